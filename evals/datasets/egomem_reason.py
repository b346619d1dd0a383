"""EgoMemReason: questions with up to ten options about a person's week, without their answers.

Reads the authors' ``annotations_public.jsonl``, and writes the file of answers that their
leaderboard reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import Field, PositiveInt, field_validator

from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.egolife import PERSON, captions_of, clock_ms
from evals.datasets.files import (
    Published,
    all_checked,
    dataset,
    file_in,
    question,
    records,
    reject_duplicate_ids,
    root_of,
)

NAME = "egomemreason"
FILE = "annotations_public.jsonl"
TYPES = {
    "Cumulative State Tracking": 100,
    "Temporal Counting": 100,
    "Event Ordering": 100,
    "Event Linking": 100,
    "Spatial Preference": 50,
    "Activity Pattern": 50,
}
_TIME = re.compile(r"DAY ?([1-9]\d{0,2}),? ?([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)", re.ASCII | re.I)


class _Row(Published):
    """A published question; ``query_time`` is in milliseconds of video time."""

    example_id: PositiveInt
    question: str
    options: dict[str, str] = Field(min_length=2, max_length=26)
    identity: str = Field(default=PERSON, min_length=1, max_length=100)
    query_time: int | None = None
    query_type: str = ""

    @field_validator("options")
    @classmethod
    def _lettered(cls, options: dict[str, str]) -> dict[str, str]:
        if sorted(options) != list(ascii_uppercase[: len(options)]):
            raise ValueError(f"options must be lettered from A on: {', '.join(sorted(options))}")
        return options

    @field_validator("query_time", mode="before")
    @classmethod
    def _video_time(cls, value: Any) -> Any:
        if value is None:
            return None
        found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None:
            raise ValueError(f"{value!r} is no day and time such as 'DAY7, 19:00:00'")
        return clock_ms(int(found[1]), found[2].zfill(2) + found[3] + found[4])


def read(folder: Path) -> Dataset:
    """Read the questions; each person's week is a video.

    Raises:
        InputError: the file is not there, or it is malformed.
    """
    path = file_in(folder, FILE)
    rows = list(all_checked(_Row, records(path)))
    questions = [_question(*row) for row in rows]
    reject_duplicate_ids(str(path), questions)
    people = dict.fromkeys(row.identity for _, row in rows)
    root = root_of(folder)
    videos = [EvalVideo(name=person, captions=captions_of(root, person)) for person in people]
    return dataset(NAME, str(path), videos, questions)


def _question(place: str, row: _Row) -> EvalQuestion:
    return question(
        place,
        id=str(row.example_id),
        video=row.identity,
        question=row.question,
        options=tuple(row.options[letter] for letter in sorted(row.options)),
        types=(row.query_type,) if row.query_type else (),
        as_of_ms=row.query_time,
    )


def submission(chosen: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the answers in the form of the leaderboard, by number of the question."""
    numbered = sorted((int(number), letter) for number, letter in chosen.items())
    return [{"example_id": number, "predicted_answer": letter} for number, letter in numbered]


SOURCES = (
    DatasetSource(
        name=NAME,
        title="EgoMemReason (its answers are kept by its leaderboard)",
        licence="CC BY-NC 4.0; the videos are EgoLife's",
        where=(
            f"{FILE} of huggingface.co/datasets/Ted412/EgoMemReason, of July 2026 or later: "
            "earlier copies have other letters. A week is known by captions, as of EgoLifeQA: "
            "those of a person in a file of that name, such as A4_LUCIA.jsonl.gz."
        ),
        read=read,
        published=Counts(questions=500, types=TYPES),
        submission=submission,
    ),
)
