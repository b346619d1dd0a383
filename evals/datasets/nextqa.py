"""NExT-QA: five-choice questions about causes, order and content of short videos.

Reads the authors' tables, or ``questions.json``; captions replace missing videos.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, field_validator, model_validator

from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion, EvalVideo
from evals.datasets.files import (
    Published,
    Words,
    all_checked,
    dataset,
    file_in,
    inside,
    json_of,
    letter,
    question,
    root_of,
    video,
    video_in,
)
from evals.datasets.own import rows_of

QUESTIONS, CAPTIONS = "questions.json", ("captions.jsonl.gz", "captions.jsonl")
TABLES = ("val.csv", "test.csv", "MC/test-00000-of-00001.parquet")
FOLDERS = ("NExTVideo", "videos")
PLACES = "map_vid_vidorID.json"
KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
CHOICES = 5


class _NextQaRow(Published):
    """A question. ``answer`` is the right option's letter, or its number from 0."""

    id: Words = Field(validation_alias=AliasChoices("id", "qid"))
    video: Words
    type: Words
    question: str
    options: tuple[Words, ...] = Field(min_length=2, max_length=26)
    answer: Words

    @model_validator(mode="before")
    @classmethod
    def _columns_are_options(cls, row: Any) -> Any:
        if not isinstance(row, dict) or "options" in row:
            return row
        return {**row, "options": [row.get(f"a{n}") for n in range(CHOICES)]}

    @field_validator("answer")
    @classmethod
    def _as_letter(cls, value: str) -> str:
        return letter(int(value)) if value.isascii() and value.isdigit() else value.strip().upper()

    @property
    def types(self) -> tuple[str, ...]:
        """Return the kind of question, then the authors' own type, as in causal and CW."""
        return KINDS.get(self.type[:1], self.type), self.type


def read(folder: Path) -> Dataset:
    """Read ``questions.json``, else the validation part, else the test part.

    Raises:
        InputError: none exists, or a record is malformed.
    """
    path = file_in(folder, QUESTIONS, *TABLES)
    root = root_of(folder)
    rows = list(all_checked(_NextQaRow, rows_of(path)))
    captions = next(
        (
            captions_path
            for name in CAPTIONS
            if (captions_path := inside(root, name, name)).is_file()
        ),
        None,
    )
    places = _places(root)
    videos = [_video(root, captions, places, place, row.video) for place, row in rows]
    questions = [_question(*row) for row in rows]
    return replace(dataset("nextqa", str(path), videos, questions), baseline=True)


def _places(root: Path) -> dict[str, str]:
    """Return the path of each video in the authors' archive, as in ``1164/3238737531``."""
    path = inside(root, PLACES, PLACES)
    mapping = json_of(path) if path.is_file() else {}
    return {str(name): str(at) for name, at in mapping.items()} if isinstance(mapping, dict) else {}


def _video(
    root: Path, captions: Path | None, places: dict[str, str], place: str, name: str
) -> EvalVideo:
    file = video_in(root, places.get(name, name), place, *FOLDERS)
    caption_file = None if file else captions
    return video(place, name=name, file=file, captions=caption_file, among=caption_file is not None)


def _question(place: str, row: _NextQaRow) -> EvalQuestion:
    has_video_id = row.id.startswith(f"{row.video}_")
    return question(
        place,
        id=row.id if has_video_id else f"{row.video}_{row.id}",
        video=row.video,
        question=row.question,
        options=row.options,
        answer=row.answer,
        types=row.types,
    )


SOURCES = (
    DatasetSource(
        name="nextqa",
        title="NExT-QA, multiple choice, validation part",
        licence="MIT; the videos are those of VidOR, for research",
        where=(
            f"{TABLES[0]} of github.com/doc-doc/NExT-QA (dataset/nextqa) with {PLACES}, the videos "
            f"in {FOLDERS[0]}/. Without videos, captions do: {CAPTIONS[0]} for homer import, each "
            "line with its video."
        ),
        read=read,
        published=Counts(videos=570, questions=4996),
    ),
)
