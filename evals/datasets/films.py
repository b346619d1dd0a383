"""Data sets that are asked after the end of a video."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from domain.errors import InputError
from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts, DatasetSource
from evals.datasets.files import (
    LETTERED,
    SECONDS,
    SEVERAL,
    WORDS,
    Seconds,
    Words,
    file_in,
    first_in,
    instant,
    json_of,
    letter,
    ms,
    without_labels,
    youtube,
)
from evals.datasets.specifications import Form, Row

OPTIONS: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[Words, ...], Field(min_length=2, max_length=26)]
)


LENGTHS = ("short", "medium", "long")
VIDEO_MME_TYPES = {
    "Temporal Perception": 55,
    "Spatial Perception": 54,
    "Attribute Perception": 222,
    "Action Recognition": 313,
    "Object Recognition": 354,
    "OCR Problems": 139,
    "Counting Problem": 268,
    "Temporal Reasoning": 177,
    "Spatial Reasoning": 56,
    "Action Reasoning": 285,
    "Object Reasoning": 454,
    "Information Synopsis": 323,
}


def _video_mme(length: str | None) -> DatasetSource:
    parquet = "test-00000-of-00001.parquet"
    types: dict[str, int] = dict.fromkeys(LENGTHS, 900) | VIDEO_MME_TYPES
    return DatasetSource(
        name=f"video-mme-{length}" if length else "video-mme",
        title=f"Video-MME, {length}" if length else "Video-MME",
        licence="academic research only; the videos are their makers'",
        where=(
            f"huggingface.co/datasets/lmms-lab/Video-MME: videomme/{parquet}, and the zips of the "
            "videos unpacked into data/, as in data/fFjv93ACGo8.mp4."
        ),
        read=Form(
            files={"": (f"videomme/{parquet}", parquet)},
            folders=("data", "videos", "."),
            keep=lambda row: length in (None, row.text("duration")),
            video="video_id",
            file="videoID",
            url=lambda row: row.text("url", default=""),
            ask=lambda row: {
                "id": row.text("question_id"),
                "question": row.text("question"),
                "options": without_labels(row.get(OPTIONS, "options")),
                "answer": row.text("answer").strip(),
                "types": (row.text("duration"), row.text("task_type")),
            },
        ).read,
        published=Counts(300, 900, {length: 900}) if length else Counts(900, 2700, types),
    )


_OPTION = re.compile(r"\n[^\S\n]*+\(([A-Z])\)[ \t]*")
_CLOCK = re.compile(r"\d{1,5}(:\d{1,2}){0,2}", re.ASCII)
_SPAN = re.compile(r"(?<![\d:])([\d:]++)\s*+-\s*+([\d:]++)")


def split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a question from its options, which follow as ``(A) ...``, a line each."""
    first, *rest = _OPTION.split(text)
    options = sorted(zip(rest[::2], rest[1::2], strict=True), key=itemgetter(0))
    return first.strip(), tuple(option.strip() for _, option in options)


def spans(text: str) -> tuple[TimeSpan, ...]:
    """Parse the spans in ``12:01-12:09, 1:02:00-1:03:00``; anything else is skipped."""
    ends = [pair for pair in _SPAN.findall(text) if all(map(_CLOCK.fullmatch, pair))]
    times = [(parse_clock(start), parse_clock(end)) for start, end in ends]
    return tuple(TimeSpan.of(start, end) for start, end in times if start <= end)


ANSWERS = "subset_answers.json"


def _public_answers(root: Path) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the letter of the right option where it is public, else an empty one."""
    path = file_in(root, [ANSWERS])
    answers = json_of(path)
    if not isinstance(answers, dict):
        raise InputError(f"{path} is no object of answers by question")
    for uid, place in answers.items():
        if not isinstance(place, int) or not 0 <= place <= 4:
            raise InputError(f"{path}, {uid}: {place!r} is no option from 0 to 4")
    letters = {uid: letter(place) for uid, place in answers.items()}
    return lambda record: {"answer": letters.get(str(record.get("q_uid")), "")}


def _egoschema(
    name: str, title: str, size: int, keep: Callable[[Row], bool] | None = None
) -> DatasetSource:
    return DatasetSource(
        name=name,
        title=title,
        licence="Ego4D licence, for which you sign",
        where=(
            f"questions.json and {ANSWERS} of github.com/egoschema/EgoSchema; its download.py "
            "fetches the clips into videos/, each named by its q_uid."
        ),
        read=Form(
            files={"": ("questions.json",)},
            add=_public_answers,
            keep=keep,
            video="q_uid",
            ask=lambda row: {
                "id": row.text("q_uid"),
                "question": row.text("question"),
                "options": tuple(row.text(f"option {n}") for n in range(5)),
                "answer": row.text("answer"),
            },
        ).read,
        published=Counts(size, size),
    )


CHOICE: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=-1, le=25)])


def longvideobench_question(row: Row) -> dict[str, Any]:
    length = row.text("duration_group", default="")
    right = row.get(CHOICE, "correct_choice", default=-1)
    return {
        "id": row.text("id"),
        "question": row.text("question"),
        "options": row.get(OPTIONS, "candidates"),
        "answer": letter(right) if right >= 0 else "",
        "types": (f"up to {length} s" if length else "", row.text("question_category", default="")),
    }


def _longvideobench(name: str, file: str, title: str, counts: Counts) -> DatasetSource:
    return DatasetSource(
        name=name,
        title=title,
        licence="CC BY-NC-SA 4.0",
        where=(
            f"huggingface.co/datasets/longvideobench/LongVideoBench: {file}, and videos.tar.part.* "
            "joined and unpacked, as in videos/86CxyhFV9MI.mp4."
        ),
        read=Form(
            files={"": (file,)},
            video="video_id",
            file="video_path",
            url=lambda row: youtube(row.text("video_id")),
            ask=longvideobench_question,
        ).read,
        published=counts,
    )


SPLITS = {
    "month-train": ("month/train.json", "month", 266),
    "month-val": ("month/val.json", "month", 623),
    "day-test": ("day/test.json", "day", 200),
    "week-test": ("week/test.json", "week", 200),
}
"""The file, the video and the number of questions of each split of MM-Lifelong."""
LIFELONG_VIDEOS = {"day": "day/0.mp4", "week": "week.mp4", "month": "month.mp4"}
INTERVALS: TypeAdapter[tuple[tuple[float, float], ...]] = TypeAdapter(
    tuple[tuple[Seconds, Seconds], ...]
)
INDEX: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=0, le=10**9)])


def lifelong_question(row: Row) -> dict[str, Any]:
    clues = row.get(INTERVALS, "total_intervals", default=())
    times = ((ms(start), ms(end)) for start, end in clues)
    return {
        "id": f"{row.part}-{row.get(INDEX, 'index')}",
        "question": row.text("question"),
        "answer": row.text("answer"),
        "types": (row.part, row.text("question_type", default="")),
        # As in the authors' scores, inverted clues are skipped.
        "spans": tuple(TimeSpan.of(start, end) for start, end in times if start <= end),
    }


NEXTQA_TABLES = ("val.csv", "test.csv", "MC/test-00000-of-00001.parquet")
NEXTQA_PLACES = "map_vid_vidorID.json"
NEXTQA_CAPTIONS = ("captions.jsonl.gz", "captions.jsonl")
NEXTQA_KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
CHOICES = 5


def nextqa_question(row: Row) -> dict[str, Any]:
    video, named, kind = row.text("video"), row.get(WORDS, "id", "qid"), row.text("type")
    right = row.text("answer").strip().upper()
    columns = [row.text(f"a{n}", default="") for n in range(CHOICES)]
    return {
        "id": named if named.startswith(f"{video}_") else f"{video}_{named}",
        "question": row.text("question"),
        "options": row.get(OPTIONS, "options", default=tuple(columns)),
        # The letter of the right option, or its number from 0.
        "answer": letter(int(right)) if right.isascii() and right.isdigit() else right,
        # The kind of question, then the authors' own type, as in causal and CW.
        "types": (NEXTQA_KINDS.get(kind[:1], kind), kind),
    }


def _archived(root: Path) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return where the video is in the authors' archive, as in ``1164/3238737531``."""
    path = first_in(root, [NEXTQA_PLACES])
    places = json_of(path) if path else {}
    known = {str(name): str(at) for name, at in places.items()} if isinstance(places, dict) else {}
    return lambda record: {"archived": known.get(str(record.get("video")), "")}


SOURCES = (
    *map(_video_mme, (None, *LENGTHS)),
    DatasetSource(
        name="lvbench",
        title="LVBench",
        licence="CC BY-NC-SA 4.0; the videos are their makers'",
        where=(
            "video_info.meta.jsonl of huggingface.co/datasets/THUDM/LVBench; each video is on "
            "YouTube under its key. Lay them out as videos/Cm73ma6Ibcs.mp4 beside it."
        ),
        read=Form(
            files={"": ("video_info.meta.jsonl", "data/video_info.meta.jsonl")},
            folders=("videos", "all_videos", "."),
            video="key",
            url=lambda row: youtube(row.text("key")),
            each=lambda row: row.rows("qa"),
            ask=lambda row: {
                "id": row.text("uid"),
                "question": split_options(row.text("question"))[0],
                "options": split_options(row.text("question"))[1],
                "answer": row.text("answer").strip(),
                "types": row.get(SEVERAL, "question_type", default=()),
                "spans": spans(row.text("time_reference", default="")),
            },
        ).read,
        published=Counts(103, 1549),
    ),
    _egoschema("egoschema", "EgoSchema (500 of the answers are public)", 5031),
    _egoschema(
        "egoschema-subset",
        "EgoSchema, the questions with public answers",
        500,
        lambda row: row.fields["answer"] != "",
    ),
    _longvideobench(
        "longvideobench",
        "lvb_val.json",
        "LongVideoBench, validation",
        Counts(
            questions=1337,
            types={
                "up to 15 s": 189,
                "up to 60 s": 172,
                "up to 600 s": 412,
                "up to 3600 s": 564,
            },
        ),
    ),
    _longvideobench(
        "longvideobench-test",
        "lvb_test_wo_gt.json",
        "LongVideoBench, test (its answers are kept by its authors)",
        Counts(questions=5341),
    ),
    DatasetSource(
        name="hippovlog",
        title="HippoVlog",
        licence="not stated by its authors; the videos are their makers'",
        where=(
            "questions.jsonl of github.com/linyueqian/HippoVlog; its download.sh fetches the "
            "vlogs into videos/, as in videos/HLDPA3FTUJ4.mp4."
        ),
        read=Form(
            files={"": ("questions.jsonl",)},
            video="video_id",
            url=lambda row: youtube(row.text("video_id")),
            ask=lambda row: {
                "id": str(row.number),
                "question": row.text("question_text"),
                "options": row.get(LETTERED, "options"),
                "answer": row.text("correct_answer").strip(),
                "types": (row.text("category"),),
                "spans": tuple(
                    instant(ms(frame.get(SECONDS, "timestamp"))) for frame in row.rows("frame_info")
                ),
            },
        ).read,
        published=Counts(
            25, 1000, dict.fromkeys(("audio_visual", "audio", "visual", "summary"), 250)
        ),
    ),
    DatasetSource(
        name="mm-lifelong",
        title="MM-Lifelong",
        licence="academic research only; the videos are their makers'",
        where=(
            "huggingface.co/datasets/MM-Lifelong/MM-Lifelong: month/train.json, "
            "month/val.json, day/test.json, week/test.json and videos/. Join the files of "
            "videos/week and of videos/month in order into videos/week.mp4 and "
            "videos/month.mp4, so that times are those of total_intervals."
        ),
        read=Form(
            files={split: (file,) for split, (file, _, _) in SPLITS.items()},
            # Each of the three videos is one long one.
            video=lambda row: SPLITS[row.part][1],
            file=lambda row: LIFELONG_VIDEOS[SPLITS[row.part][1]],
            ask=lifelong_question,
        ).read,
        published=Counts(3, 1289, {split: size for split, (_, _, size) in SPLITS.items()}),
    ),
    DatasetSource(
        name="nextqa",
        title="NExT-QA, multiple choice, validation part",
        licence="MIT; the videos are those of VidOR, for research",
        where=(
            f"{NEXTQA_TABLES[0]} of github.com/doc-doc/NExT-QA (dataset/nextqa) with "
            f"{NEXTQA_PLACES}, the videos in NExTVideo/. Without videos, captions do: "
            f"{NEXTQA_CAPTIONS[0]} for homer import, each line with its video."
        ),
        read=Form(
            files={"": ("questions.json", *NEXTQA_TABLES)},
            folders=("NExTVideo", "videos"),
            add=_archived,
            video="video",
            file=lambda row: row.fields["archived"] or row.text("video"),
            captions=lambda root, _: first_in(root, NEXTQA_CAPTIONS),
            among=True,
            ask=nextqa_question,
            baseline=True,
        ).read,
        published=Counts(570, 4996),
    ),
)
