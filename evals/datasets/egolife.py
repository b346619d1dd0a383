"""EgoLifeQA: four-choice questions about a person's week, each asked as of a moment of it.

Reads the authors' ``EgoLifeQA_A1_JAKE.json``, or ``questions.json`` as ``homer eval egolife`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveInt, field_validator

from domain.time import TimeSpan
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Lettered,
    Published,
    Words,
    all_checked,
    dataset,
    file_in,
    inside,
    instant,
    ms,
    question,
    records,
    reject_duplicate_ids,
    root_of,
    rows_of,
)
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


class _EgoLifeTime(Published):
    """A day, and a time as ``HHMMSS`` and two digits for the frame, which are ignored."""

    date: str = Field(pattern=r"(?i)^DAY[1-9][0-9]{0,2}$")
    time: str = Field(pattern=r"^([01][0-9]|2[0-3])([0-5][0-9]){2}[0-9]{0,2}$")

    @property
    def video_ms(self) -> int:
        """Return the milliseconds of video time since the start of day 1."""
        return clock_ms(int(self.date[3:]), self.time)


class _EgoLifeRow(Published):
    id: Words = Field(alias="ID")
    query_time: _EgoLifeTime
    type: str
    question: str
    choice_a: Words
    choice_b: Words
    choice_c: Words
    choice_d: Words
    answer: str
    spans: tuple[TimeSpan, ...] = Field(default=(), alias="target_time")

    @field_validator("spans", mode="before")
    @classmethod
    def _targets(cls, value: Any) -> Any:
        return tuple(targets(value))

    @property
    def options(self) -> tuple[str, ...]:
        """Return all four options, in order."""
        return self.choice_a, self.choice_b, self.choice_c, self.choice_d

    @property
    def as_of_ms(self) -> int:
        """Return the milliseconds of video time at which it is asked."""
        return self.query_time.video_ms


def targets(raw: Any) -> Iterator[TimeSpan]:
    """Yield the spans of a ``target_time``; unreadable parts are skipped.

    It is ``{date, time}`` or ``{date, time_list}``, or a list of these. A ``time`` of two stamps is
    a span, any other number of stamps are moments; a stamp may be preceded by its day.
    """
    for target in raw if isinstance(raw, list) else [raw]:
        if isinstance(target, dict):
            listed = target.get("time_list")
            words = " ".join(map(str, listed)) if isinstance(listed, list) else target.get("time")
            day, stamps = 0, list[int]()
            for match in _STAMP.finditer(f"{target.get('date', '')} {words}"):
                if match[1]:
                    day = int(match[1])
                elif day:
                    stamps.append(clock_ms(day, match[2]))
            is_span = listed is None and len(stamps) == 2 and stamps[0] < stamps[1]
            yield from [TimeSpan.of(*stamps)] if is_span else map(instant, stamps)


def clock_ms(day: int, time: str) -> int:
    """Return the milliseconds of video time at ``HHMMSS`` of a day, from 1."""
    hours, minutes, seconds = int(time[:2]), int(time[2:4]), int(time[4:6])
    return (day - 1) * DAY_S * 1000 + 1000 * (3600 * hours + 60 * minutes + seconds)


def read(folder: Path) -> Dataset:
    """Read the questions, in the authors' form or in that of ``homer eval egolife``.

    Raises:
        InputError: neither file is there, or it is malformed.
    """
    path = file_in(folder, f"EgoLifeQA/{FILE}", FILE, QUESTIONS)
    if path.name == QUESTIONS:
        root = root_of(folder)
        video = EvalVideo(name=TITLE, captions=captions_of(root, PERSON))
        questions = [_question(at, row, TITLE) for at, row in all_checked(_OurRow, rows_of(path))]
        return dataset("egolifeqa", str(path), [video], questions)
    rows = list(all_checked(_EgoLifeRow, records(path)))
    video = EvalVideo(name=PERSON, captions=captions_of(root_of(folder), PERSON))
    return dataset(
        "egolifeqa", str(path), [video], [_question(at, row, PERSON) for at, row in rows]
    )


def _question(place: str, row: _EgoLifeRow | _OurRow | _ReasonRow, video: str) -> EvalQuestion:
    return question(
        place,
        id=str(row.id),
        video=video,
        question=row.question,
        options=row.options,
        answer=row.answer.strip(),
        types=(row.type,) if row.type else (),
        as_of_ms=row.as_of_ms,
        spans=row.spans,
    )


def captions_of(root: Path, person: str) -> Path | None:
    """Find the captions of a person's week: in a file of the person's name, or in ``CAPTIONS``.

    ``CAPTIONS`` holds those of the person that EgoLifeQA is about.

    Raises:
        InputError: the name, or a link, leads out of the folder.
    """
    files = (f"{person}.jsonl.gz", *((CAPTIONS,) if person == PERSON else ()))
    names = (name for file in files for name in (file, file.removesuffix(".gz")))
    paths = (inside(root, name, str(root)) for name in names)
    return next((path for path in paths if path.is_file()), None)


Day = Annotated[int, Field(ge=1, le=366)]
Second = Annotated[float, Field(ge=0, le=DAY_S)]


class _Moment(Published):
    day: Day
    second: Second


class _Target(Published):
    day: Day
    start: Second
    end_day: Day
    end: Second


class _OurRow(Published):
    id: str
    type: str
    question: str
    options: tuple[str, ...] = Field(min_length=2, max_length=26)
    answer: str = Field(pattern=r"^[A-Z]$")
    as_of: _Moment
    targets: tuple[_Target, ...]

    @property
    def as_of_ms(self) -> int:
        """Return the milliseconds of video time at which it is asked."""
        return ms((self.as_of.day - 1) * DAY_S + self.as_of.second)

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """Return the spans in which the answer can be seen or heard."""
        times = (
            (ms((one.day - 1) * DAY_S + one.start), ms((one.end_day - 1) * DAY_S + one.end))
            for one in self.targets
        )
        return tuple(TimeSpan.of(a, b) if b > a else instant(a) for a, b in times)


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


class _ReasonRow(Published):
    """A published question; ``query_time`` is in milliseconds of video time."""

    id: PositiveInt = Field(alias="example_id")
    question: str
    options: Lettered
    identity: str = Field(default=PERSON, min_length=1, max_length=100)
    as_of_ms: int | None = Field(default=None, alias="query_time")
    type: str = Field(default="", alias="query_type")
    answer: ClassVar[str] = ""
    spans: ClassVar[tuple[TimeSpan, ...]] = ()

    @field_validator("as_of_ms", mode="before")
    @classmethod
    def _video_time(cls, value: Any) -> Any:
        if value is None:
            return None
        found = _DAY_AND_TIME.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            raise ValueError(f"{value!r} is no day and time such as 'DAY7, 19:00:00'")
        return clock_ms(int(found[1]), found[2].zfill(2) + found[3] + found[4])


def read_reason(folder: Path) -> Dataset:
    """Read the questions; each person's week is a video.

    Raises:
        InputError: the file is not there, or it is malformed.
    """
    path = file_in(folder, REASON_FILE)
    rows = list(all_checked(_ReasonRow, records(path)))
    questions = [_question(place, row, row.identity) for place, row in rows]
    reject_duplicate_ids(str(path), questions)
    people = dict.fromkeys(row.identity for _, row in rows)
    root = root_of(folder)
    videos = [EvalVideo(name=person, captions=captions_of(root, person)) for person in people]
    return dataset(NAME, str(path), videos, questions)


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
        read=read_reason,
        published=Counts(questions=500, types=REASON_TYPES),
        submission=submission,
    ),
)
