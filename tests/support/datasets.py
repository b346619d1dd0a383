"""Small data sets of our own making, in the forms in which the real ones are published."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

Files = dict[str, Any]
"""What a folder holds: the content of each file, by its path."""

PARQUET = "videomme/test-00000-of-00001.parquet"


def lay(folder: Path, files: Files) -> Path:
    """Writes the files in their form; None is a video, which may be empty here."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.touch()
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in content))
        elif path.suffix == ".parquet":
            parquet.write_table(pyarrow.Table.from_pylist(content), path)
        elif path.suffix == ".csv":
            with path.open("w", newline="") as file:
                rows = csv.DictWriter(file, list(content[0]))
                rows.writeheader()
                rows.writerows(content)
        else:
            path.write_text(json.dumps(content))
    return folder


def robot(qas: list[dict[str, Any]]) -> dict[str, Any]:
    return {"video_path": "data/videos/robot/hall_01.mp4", "mem_path": "x.pkl", "qa_list": qas}


ROBOT_QA: dict[str, Any] = {
    "question": "Where is the kettle?",
    "answer": "On the shelf.",
    "question_id": "hall_01_Q01",
    "reasoning": "Ann puts it there.",
    "timestamp": "05:10",
    "type": ["Human Understanding", "Cross-Modal Reasoning"],
    "before_clip": 9,
}
WEB: dict[str, Any] = {
    "abc-_123XYZ": {
        "video_url": "https://www.youtube.com/watch?v=abc-_123XYZ",
        "video_path": "data/videos/web/abc-_123XYZ.mp4",
        "mem_path": "data/memory_graphs/web/abc-_123XYZ.pkl",
        "qa_list": [
            {
                "question": "Does the host trust Bob?",
                "answer": "No",
                "question_id": "abc-_123XYZ_Q1",
                "reasoning": "He says so.",
                "type": ["Multi-Hop Reasoning"],
            }
        ],
    }
}


def mme(number: str, duration: str, **more: Any) -> dict[str, Any]:
    row = {
        "video_id": number,
        "duration": duration,
        "domain": "Knowledge",
        "sub_category": "Astronomy",
        "url": f"https://www.youtube.com/watch?v=tube{number}",
        "videoID": f"tube{number}",
        "question_id": f"{number}-1",
        "task_type": "Counting Problem",
        "question": "How many moons are shown?",
        "options": ["A. One.", "B. Two.", "C. Three.", "D. Four."],
        "answer": "C",
    }
    return {**row, **more}


LVBENCH: list[dict[str, Any]] = [
    {
        "key": "Key_1234567",
        "type": "cartoon",
        "qa": [
            {
                "uid": "17",
                "question": "What is on the sign?\n(A) A fox\n(B) A hen\n(C) 1636\n(D) Nothing",
                "answer": "B",
                "question_type": ["key information retrieval", "event understanding"],
                "time_reference": "00:15-01:02:19",
            }
        ],
        "video_info": {"duration_minutes": 70.2},
    }
]
EGOSCHEMA: Files = {
    "questions.json": [
        {
            "q_uid": uid,
            "google_drive_id": "1Ab",
            "question": "What is C mostly doing?",
            **{f"option {n}": f"Doing {n}." for n in range(5)},
        }
        for uid in ("0001-a", "0002-b")
    ],
    "subset_answers.json": {"0002-b": 3},
}
OVO: list[dict[str, Any]] = [
    {
        "id": 0,
        "task": "EPM",
        "video": "Ego4D/walk.mp4",
        "question": "Where was the cup?",
        "options": ["In the sink", "On the bed"],
        "gt": 1,
        "realtime": 67.5,
    },
    {
        "id": 1,
        "task": "REC",
        "video": "coin/jump.mp4",
        "activity": "jump over the rope",
        "test_info": [{"realtime": 4, "count": 0}, {"realtime": 9.25, "count": 2}],
    },
    {
        "id": 2,
        "task": "SSR",
        "video": "coin/soup.mp4",
        "tutorial": "Make soup",
        "test_info": [
            {"realtime": 10, "type": 0, "step": "add salt"},
            {"realtime": 20, "type": 1, "step": "add salt"},
        ],
    },
    {
        "id": 3,
        "task": "CRR",
        "video": "MovieNet/tt1.mp4",
        "question": "Whom does he meet?",
        "answer": "His aunt.",
        "ask_time": 200,
        "clue_time": 220,
        "test_info": [{"realtime": 200, "type": 0}, {"realtime": 222, "type": 1}],
    },
]
STREAMING_REAL: dict[str, Any] = {
    "question_id": "Real-Time Visual Understanding_sample_1_1",
    "task_type": "Object Perception",
    "question": "Which logo is shown right now?",
    "time_stamp": "00:01:04",
    "answer": "B",
    "options": str(["A. A fox.", "B. A hen.", "C. An owl.", "D. None."]),
    "frames_required": "single",
    "temporal_clue_type": "Prior",
}
STREAMING_DUE: dict[str, Any] = {
    "question_id": "Proactive Output_sample_7_2",
    "task_type": "Proactive Output",
    "question": 'When the board shows three points, output "3".',
    "time_stamp": "00:00:20",
    "ground_truth_time_stamp": "00:00:29",
    "ground_truth_output": "3",
    "frames_required": "single",
    "temporal_clue_type": "Subsequent",
}
STREAMING: Files = {
    "StreamingBench/Real_Time_Visual_Understanding.csv": [STREAMING_REAL],
    "StreamingBench/Proactive_Output.csv": [STREAMING_DUE],
}
LONGVIDEO: dict[str, Any] = {
    "video_id": "vid_1",
    "question": "When the boat is on screen, what is said?",
    "question_wo_referring_query": "What is said?",
    "candidates": ["Ahoy", "Nothing", "Land", "Help", "Row"],
    "correct_choice": 4,
    "position": [10, 20],
    "topic_category": "NP-News-Programs",
    "question_category": "S2E",
    "level": "L1-Perception",
    "id": "vid_1_0",
    "video_path": "vid_1.mp4",
    "subtitle_path": "vid_1_en.json",
    "duration_group": 600,
    "starting_timestamp_for_subtitles": 0,
    "duration": 190.0,
    "view_count": 7,
}
EGOLIFE: dict[str, Any] = {
    "ID": "1",
    "query_time": {"date": "DAY2", "time": "11210217"},
    "type": "EntityLog",
    "need_audio": False,
    "need_name": True,
    "last_time": True,
    "trigger": "Bob asks",
    "question": "Who held the ladder first?",
    "choice_a": "Ann",
    "choice_b": "Bob",
    "choice_c": "Eve",
    "choice_d": "Dan",
    "answer": "B",
    "target_time": {"date": "DAY1", "time": "11152408"},
    "keywords": "ladder",
    "reason": "Bob is seen with it",
}
HIPPO: dict[str, Any] = {
    "question_text": "Which cup does she take?",
    "options": {"A": "Red", "B": "Blue", "C": "None", "D": "Both"},
    "correct_answer": "D",
    "explanation": "She takes both.",
    "video_id": "vlog_1",
    "category": "visual",
    "frame_info": {"path": "data/x.jpg", "timestamp": 186.9, "frame_index": 186},
}
LIFELONG: dict[str, Any] = {
    "index": 0,
    "question": "What is won after the second try?",
    "answer": "A cup",
    "question_type": "Event Recognition",
    "temporal_certificate": "Short",
    "clue_interval": [{"video_id": "14", "intervals": [[13, 20.5]]}],
    "total_intervals": [[105826.63, 105834.13], [11867, 11842]],
}

EGOMEM: dict[str, Any] = {
    "example_id": 7,
    "p_id": "A1_JAKE_DAY7_19_00_00_q007",
    "identity": "A1_JAKE",
    "query_time": "DAY7, 19:00:00",
    "question": "In which order did I use these?",
    "options": {"B": "Cup, pan", "A": "Pan, cup", "C": "Only the pan"},
    "query_type": "Event Ordering",
}

NEXT: dict[str, Any] = {
    "id": "3238737531_4",
    "video": "3238737531",
    "type": "CW",
    "question": "why did the boy run to the door?",
    "options": ["to open it", "to dance", "to fetch a ball", "to sleep", "he is cold"],
    "answer": "C",
}
EXAMPLES: dict[str, Files] = {
    "own": {"questions.json": [{"video": "a.mp4", "question": "Who?", "answer": "Ann"}]},
    "m3-robot": {"robot.json": {"hall_01": robot([ROBOT_QA])}},
    "m3-web": {"web.json": WEB},
    "video-mme": {PARQUET: [mme("001", "short"), mme("601", "long")]},
    "video-mme-short": {PARQUET: [mme("001", "short")]},
    "video-mme-medium": {PARQUET: [mme("301", "medium")]},
    "video-mme-long": {PARQUET: [mme("601", "long")]},
    "lvbench": {"video_info.meta.jsonl": LVBENCH},
    "egoschema": EGOSCHEMA,
    "egoschema-subset": EGOSCHEMA,
    "ovo-bench": {"ovo_bench_new.json": OVO},
    "streamingbench": STREAMING,
    "longvideobench": {"lvb_val.json": [LONGVIDEO]},
    "longvideobench-test": {"lvb_test_wo_gt.json": [LONGVIDEO]},
    "egolifeqa": {"EgoLifeQA_A1_JAKE.json": [EGOLIFE]},
    "egomemreason": {"annotations_public.jsonl": [EGOMEM]},
    "hippovlog": {"questions.jsonl": [HIPPO]},
    "mm-lifelong": {"month/val.json": [LIFELONG]},
    "nextqa": {"questions.json": {"questions": [NEXT]}},
}
"""A copy of each data set, as small as can be."""
