"""EgoLifeQA: four-choice questions about a person's week, each asked as of a moment of it.

Reads the authors' ``EgoLifeQA_A1_JAKE.json``, or ``questions.json`` as ``homer eval egolife`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PositiveInt, TypeAdapter

from domain.time import TimeSpan
from evals.dataset import Counts, Dataset, DatasetSource
from evals.datasets.files import LETTERED, file_in, first_in, instant, ms
from evals.datasets.specifications import Form, Row
from memory.captions import DAY_S

CAPTIONS, QUESTIONS = "captions.jsonl.gz", "questions.json"
"""The files in the form of ``homer eval egolife``."""
TITLE = "egolife"
"""The title of the video of such captions."""
FILE = "EgoLifeQA_A1_JAKE.json"
PERSON = "A1_JAKE"
TYPES = {
    "EntityLog": 125,
    "EventRecall": 126,
    "HabitInsight": 61,
    "RelationMap": 125,
    "TaskMaster": 63,
}
_STAMP = re.compile(r"DAY(\d{1,3})|(?<!\d)(\d{6})\d{0,2}(?!\d)", re.ASCII | re.I)


DAY: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=r"(?i)^DAY[1-9][0-9]{0,2}$")])
TIME: TypeAdapter[str] = TypeAdapter(
    Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3])([0-5][0-9]){2}[0-9]{0,2}$")]
)
"""``HHMMSS`` and two digits for the frame, which are ignored."""


def captions_of(root: Path, person: str) -> Path | None:
    """Find the captions of a person's week: in a file of the person's name, or in ``CAPTIONS``.

    Raises:
        InputError: the name, or a link, leads out of the folder.
    """
    # ``CAPTIONS`` holds those of the person that EgoLifeQA is about.
    files = (f"{person}.jsonl.gz", *((CAPTIONS,) if person in (PERSON, TITLE) else ()))
    return first_in(root, [name for file in files for name in (file, file.removesuffix(".gz"))])


def egolife_question(row: Row) -> dict[str, Any]:
    asked = row.inner("query_time")
    return {
        "id": row.text("ID"),
        "question": row.text("question"),
        "options": tuple(row.text(f"choice_{letter}") for letter in "abcd"),
        "answer": row.text("answer").strip(),
        "types": (row.text("type"),),
        "as_of_ms": clock_ms(int(asked.get(DAY, "date")[3:]), asked.get(TIME, "time")),
        "spans": tuple(targets(row.fields.get("target_time"))),
    }


def targets(raw: Any) -> Iterator[TimeSpan]:
    """Yield the spans of a ``target_time``; unreadable parts are skipped.

    It is ``{date, time}`` or ``{date, time_list}``, or a list of these.
    """
    for target in raw if isinstance(raw, list) else [raw]:
        if isinstance(target, dict):
            listed = target.get("time_list")
            words = " ".join(map(str, listed)) if isinstance(listed, list) else target.get("time")
            day, stamps = 0, list[int]()
            for match in _STAMP.finditer(f"{target.get('date', '')} {words}"):
                # A stamp may be preceded by its day.
                if match[1]:
                    day = int(match[1])
                elif day:
                    stamps.append(clock_ms(day, match[2]))
            # A ``time`` of two stamps is a span, any other number of stamps are moments.
            is_span = listed is None and len(stamps) == 2 and stamps[0] < stamps[1]
            yield from [TimeSpan.of(*stamps)] if is_span else map(instant, stamps)


def clock_ms(day: int, time: str) -> int:
    """Return the milliseconds of video time at ``HHMMSS`` of a day, from 1."""
    hours, minutes, seconds = int(time[:2]), int(time[2:4]), int(time[4:6])
    return (day - 1) * DAY_S * 1000 + 1000 * (3600 * hours + 60 * minutes + seconds)


NTH_DAY: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=1, le=366)])
SECOND: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(ge=0, le=DAY_S)])


def _at(row: Row, day: str, second: str) -> int:
    return ms((row.get(NTH_DAY, day) - 1) * DAY_S + row.get(SECOND, second))


OPTIONS: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[str, ...], Field(min_length=2, max_length=26)]
)
LETTER: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=r"^[A-Z]$")])


def our_question(row: Row) -> dict[str, Any]:
    """Read a question in the form of ``homer eval egolife``."""
    times = [
        (_at(target, "day", "start"), _at(target, "end_day", "end"))
        for target in row.rows("targets")
    ]
    return {
        "id": row.text("id"),
        "question": row.text("question"),
        "options": row.get(OPTIONS, "options"),
        "answer": row.get(LETTER, "answer"),
        "types": (row.text("type"),),
        "as_of_ms": _at(row.inner("as_of"), "day", "second"),
        "spans": tuple(TimeSpan.of(a, b) if b > a else instant(a) for a, b in times),
    }


OUR_FORM = Form(
    files={"": (QUESTIONS,)},
    folders=(),
    video=lambda _: TITLE,
    captions=captions_of,
    ask=our_question,
)
FORM = Form(
    files={"": (f"EgoLifeQA/{FILE}", FILE)},
    folders=(),
    video=lambda _: PERSON,
    captions=captions_of,
    ask=egolife_question,
)


def read(name: str, folder: Path) -> Dataset:
    """Read the questions, in the authors' form or in that of ``homer eval egolife``.

    Raises:
        InputError: neither file is there, or it is malformed.
    """
    path = file_in(folder, (f"EgoLifeQA/{FILE}", FILE, QUESTIONS))
    return (OUR_FORM if path.name == QUESTIONS else FORM).read(name, folder)


# EgoMemReason: questions with up to ten options about a person's week, without their answers; and
# the file of answers that its leaderboard reads.

NAME = "egomemreason"
REASON_FILE = "annotations_public.jsonl"
REASON_TYPES = {
    "Cumulative State Tracking": 100,
    "Temporal Counting": 100,
    "Event Ordering": 100,
    "Event Linking": 100,
    "Spatial Preference": 50,
    "Activity Pattern": 50,
}
_DAY_AND_TIME = re.compile(
    r"DAY ?([1-9]\d{0,2}),? ?([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)", re.ASCII | re.I
)


NUMBER: TypeAdapter[int] = TypeAdapter(PositiveInt)


def _video_time(value: Any) -> Any:
    if value is None:
        return None
    found = _DAY_AND_TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is no day and time such as 'DAY7, 19:00:00'")
    return clock_ms(int(found[1]), found[2].zfill(2) + found[3] + found[4])


ASKED: TypeAdapter[int | None] = TypeAdapter(Annotated[int | None, BeforeValidator(_video_time)])
REASON_FORM = Form(
    files={"": (REASON_FILE,)},
    folders=(),
    video=lambda row: row.text("identity", default=PERSON),
    captions=captions_of,
    ask=lambda row: {
        "id": str(row.get(NUMBER, "example_id")),
        "question": row.text("question"),
        "options": row.get(LETTERED, "options"),
        "types": (row.text("query_type", default=""),),
        "as_of_ms": row.get(ASKED, "query_time", default=None),
    },
    own_ids=True,
)


def submission(chosen: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the answers in the form of the leaderboard, by number of the question."""
    numbered = sorted((int(number), letter) for number, letter in chosen.items())
    return [{"example_id": number, "predicted_answer": letter} for number, letter in numbered]


SOURCES = (
    DatasetSource(
        name="egolifeqa",
        title="EgoLifeQA, participant A1_JAKE",
        licence="see the data set's page; research",
        where=(
            f"EgoLifeQA/{FILE} of huggingface.co/datasets/lmms-lab/EgoLife. The week is thousands "
            f"of short files, so it is known by captions: put {CAPTIONS} for homer import beside "
            "it, with day, and start and end in seconds of that day."
        ),
        read=read,
        published=Counts(videos=1, questions=500, types=TYPES),
    ),
    DatasetSource(
        name=NAME,
        title="EgoMemReason (its answers are kept by its leaderboard)",
        licence="CC BY-NC 4.0; the videos are EgoLife's",
        where=(
            f"{REASON_FILE} of huggingface.co/datasets/Ted412/EgoMemReason, of July 2026 or later: "
            "earlier copies have other letters. A week is known by captions, as of EgoLifeQA: "
            "those of a person in a file of that name, such as A4_LUCIA.jsonl.gz."
        ),
        read=REASON_FORM.read,
        published=Counts(questions=500, types=REASON_TYPES),
        submission=submission,
    ),
)
