"""Data sets whose questions are asked as of a moment of a running video.

OVO-Bench: each question is asked as of its ``realtime``. The forward tasks ask the same thing at
several times: how often something was done so far (REC), whether a step is being done (SSR),
whether enough was seen to answer (CRR). Each of these times is a question here, as in the authors'
scores.

StreamingBench: a question of ``Proactive_Output.csv`` is to be answered once something is seen. It
is asked as of the moment at which its answer is due, and its span is the wait. The questions of
``Sequential_Question_Answering.csv`` refer to earlier ones, which are not given here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter

from domain.time import TimeSpan, parse_clock
from evals.dataset import Counts, DatasetSource
from evals.datasets.files import SECONDS, SEVERAL, Words, letter, ms
from evals.datasets.specifications import Form, Row

CLIP_MS = 30_000
"""Length of M3-Bench's clips; ``before_clip`` counts them from 0."""
BEFORE: TypeAdapter[int | None] = TypeAdapter(Annotated[int, Field(ge=-1, le=1_000_000)] | None)


def m3_time(row: Row) -> int | None:
    """Return the end of the last clip known when it is asked; None: the whole video."""
    before = row.get(BEFORE, "before_clip", default=None)
    if before is not None:
        return (before + 1) * CLIP_MS
    time = row.text("timestamp", default="")
    return parse_clock(time) if time else None


def _m3_bench(part: str, licence: str, where: str, counts: Counts) -> DatasetSource:
    name = f"{part}.json"
    return DatasetSource(
        name=f"m3-{part}",
        title=f"M3-Bench, {part}",
        licence=licence,
        where=f"data/annotations/{name} of github.com/ByteDance-Seed/m3-agent; {where}",
        read=Form(
            files={"": (f"data/annotations/{name}", f"annotations/{name}", name)},
            by_name=True,
            folders=(f"data/videos/{part}", f"videos/{part}", "videos", "."),
            video=lambda row: row.key,
            file=lambda row: (
                PurePosixPath(row.text("video_path", default="")).name or f"{row.key}.mp4"
            ),
            url=lambda row: row.text("video_url", default=""),
            each=lambda row: row.rows("qa_list"),
            ask=lambda row: {
                "id": row.text("question_id"),
                "question": row.text("question"),
                "answer": row.text("answer"),
                "types": row.get(SEVERAL, "type", default=()),
                "as_of_ms": m3_time(row),
            },
        ).read,
        published=counts,
    )


BACKWARD = {"EPM": 297, "ASI": 148, "HLD": 186}
REALTIME = {"OCR": 149, "ACR": 109, "ATR": 116, "STU": 178, "FPD": 101, "OJR": 184}
FORWARD = {"REC": 698, "SSR": 629, "CRR": 240}
"""Questions of each task of OVO-Bench; for the forward tasks, each of their times."""
MODES = {
    **dict.fromkeys(BACKWARD, "backward"),
    **dict.fromkeys(REALTIME, "realtime"),
    **dict.fromkeys(FORWARD, "forward"),
}
FORWARD_WORDING = {
    "REC": ("activity", "How many times did they {} so far? Answer with a number."),
    "SSR": ("step", "Is this step being done right now? The step: {}"),
    "CRR": ("question", "Was enough seen so far to answer this question? The question: {}"),
}
"""The field with the subject of a forward task, which is all that the set gives, and its words."""


GT: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=0, le=25)])
DONE: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=0, le=1)])
COUNT: TypeAdapter[int] = TypeAdapter(int)
SUBJECT: TypeAdapter[str] = TypeAdapter(
    Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
)
OPTIONS: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[Words, ...], Field(min_length=1)]
)


def _mode(row: Row) -> str:
    task = row.text("task")
    if task not in MODES:
        raise ValueError(f"task: {task!r} is none of {', '.join(MODES)}")
    return MODES[task]


def ovo_question(row: Row) -> dict[str, Any]:
    """Read a question of OVO-Bench, or one of the times at which it is asked."""
    mode, task, name = _mode(row), row.text("task"), row.text("id")
    known = {"types": (mode, task), "as_of_ms": ms(row.get(SECONDS, "realtime"))}
    if mode != "forward":
        return known | {
            "id": name,
            "question": row.text("question"),
            "options": row.get(OPTIONS, "options"),
            "answer": letter(row.get(GT, "gt")),
        }
    subject, wording = FORWARD_WORDING[task]
    counts = task == "REC"
    return known | {
        "id": f"{name}_{row.number}",
        "question": wording.format(row.get(SUBJECT, subject)),
        "options": () if counts else ("Yes", "No"),
        "answer": str(row.get(COUNT, "count")) if counts else "BA"[row.get(DONE, "type")],
    }


TABLES = {
    "Real_Time_Visual_Understanding": ("real", 2500),
    "Omni_Source_Understanding": ("omni", 1000),
    "Contextual_Understanding": ("omni", 500),
    "Sequential_Question_Answering": ("sqa", 250),
    "Proactive_Output": ("proactive", 250),
}
"""StreamingBench: the authors' folder for a table's videos, and its number of questions."""

_ID = re.compile(r"(?P<kind>.+)_sample_(?P<sample>\d+)_\d+", re.ASCII)
_LABEL = re.compile(r"(?<!\s)\s*+([A-H])[.):]\s*")
CLOCK: TypeAdapter[str] = TypeAdapter(
    Annotated[str, Field(pattern=r"^\s*[0-9]{1,3}(:[0-9]{1,2}){1,2}(\.[0-9]{1,9})?\s*$")]
)


def _parsed(value: Any) -> Any:
    """Parse a cell with the options as a list in Python's notation."""
    if not isinstance(value, str):
        return value
    try:
        parsed = ast.literal_eval(value)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"no list of options: {value[:80]!r}") from error
    return joined_options([str(one) for one in parsed]) if isinstance(parsed, list) else value


CELL: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[str, ...], BeforeValidator(_parsed)]
)


def _sample(row: Row) -> tuple[str, str]:
    """Return the kind and the video's folder that a question's id names."""
    named = row.text("question_id").strip()
    if (found := _ID.fullmatch(named)) is None:
        raise ValueError(f"question_id: {named!r} is not KIND_sample_VIDEO_QUESTION")
    return found["kind"], f"sample_{found['sample']}"


def _folders(row: Row) -> Sequence[str]:
    kind, under = _sample(row)[0], f"data/{TABLES[row.part][0]}"
    return kind, f"{under}/{kind}", f"videos/{kind}", under


def streaming_question(row: Row) -> dict[str, Any]:
    asked, name = parse_clock(row.get(CLOCK, "time_stamp")), "ground_truth_time_stamp"
    # When what is to be seen is there, if the answer is to wait for it.
    due = parse_clock(row.get(CLOCK, name)) if row.fields.get(name) else None
    output = row.text("ground_truth_output", default="")
    return {
        "id": row.text("question_id"),
        "question": row.text("question"),
        "options": row.get(CELL, "options", default=()),
        "answer": row.text("answer", default="").strip() or output,
        "types": (row.part.replace("_", " "), row.text("task_type").strip()),
        "as_of_ms": asked if due is None else due,
        "spans": (TimeSpan.of(asked, due),) if due is not None and due >= asked else (),
    }


def joined_options(options: list[str]) -> tuple[str, ...]:
    """Return options without letters, with parts torn off by a line break joined again."""
    if not options or not _LABEL.match(options[0]):
        return tuple(options)
    if len(options) <= 4:
        return tuple(_LABEL.sub("", option, count=1).strip() for option in options)
    # Only a list that is too long was torn, or repeats itself: the first of each letter counts.
    joined: dict[str, list[str]] = {}
    current: list[str] = []
    for option in options:
        if mark := _LABEL.match(option):
            current = []
            joined.setdefault(mark[1], current)
            option = option[mark.end() :]
        current.append(option.strip())
    return tuple(" ".join(joined[letter]) for letter in sorted(joined))


SOURCES = (
    _m3_bench(
        "robot",
        "Apache-2.0 (annotations); see the data set's page for the videos",
        "the videos are in videos/robot/ of huggingface.co/datasets/ByteDance-Seed/M3-Bench. "
        "Put both into one folder: robot.json, videos/robot/living_room_06.mp4.",
        Counts(100, 1276),
    ),
    _m3_bench(
        "web",
        "Apache-2.0 (annotations); the videos are their makers'",
        "each video is at its video_url. Put both into one folder: web.json, "
        "videos/web/Efk3K4epEzg.mp4.",
        Counts(920, 3214),
    ),
    DatasetSource(
        name="ovo-bench",
        title="OVO-Bench",
        licence="CC BY-NC-SA 4.0",
        where=(
            "data/ovo_bench_new.json of github.com/JoeLeelyf/OVO-Bench, and the src_videos "
            "archives of huggingface.co/datasets/JoeLeelyf/OVO-Bench unpacked into "
            "src_videos/. The chunked videos are not needed: questions are asked as of their "
            "times."
        ),
        read=Form(
            files={"": ("ovo_bench_new.json", "data/ovo_bench_new.json")},
            folders=("src_videos", "data/src_videos", "videos", "."),
            video="video",
            each=lambda row: row.rows("test_info") if _mode(row) == "forward" else [row],
            ask=ovo_question,
        ).read,
        published=Counts(644, 3035, {**BACKWARD, **REALTIME, **FORWARD}),
    ),
    DatasetSource(
        name="streamingbench",
        title="StreamingBench",
        licence="research only; see the data set's page",
        where=(
            "huggingface.co/datasets/mjuicem/StreamingBench: the tables of "
            "StreamingBench/*.csv, and the zips unpacked as its README tells, into data/real, "
            "data/omni, data/sqa and data/proactive."
        ),
        read=Form(
            files={table: (f"{table}.csv", f"StreamingBench/{table}.csv") for table in TABLES},
            folders=_folders,
            video=lambda row: "/".join(_sample(row)),
            file=lambda row: f"{_sample(row)[1]}/video.mp4",
            ask=streaming_question,
        ).read,
        published=Counts(
            900, 4500, {table.replace("_", " "): size for table, (_, size) in TABLES.items()}
        ),
    ),
)
