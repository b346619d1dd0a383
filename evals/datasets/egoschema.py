"""EgoSchema: five-choice questions about three minutes of a day, of which 500 have answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field

from domain.errors import InputError
from evals.dataset import Counts, Dataset, DatasetSource, EvalQuestion
from evals.datasets.files import (
    Published,
    all_checked,
    dataset,
    file_in,
    json_of,
    letter,
    question,
    records,
    root_of,
    video,
    video_in,
)

QUESTIONS, ANSWERS = "questions.json", "subset_answers.json"


class _EgoSchemaRow(Published):
    uid: str = Field(alias="q_uid")
    question: str
    option_0: str = Field(alias="option 0")
    option_1: str = Field(alias="option 1")
    option_2: str = Field(alias="option 2")
    option_3: str = Field(alias="option 3")
    option_4: str = Field(alias="option 4")

    @property
    def options(self) -> tuple[str, ...]:
        """Return all five options, in order."""
        return self.option_0, self.option_1, self.option_2, self.option_3, self.option_4


def read(subset: bool, folder: Path) -> Dataset:
    """Read all questions, or the ``subset`` with public answers.

    Raises:
        InputError: a file is missing or malformed.
    """
    path = file_in(folder, QUESTIONS)
    root = root_of(folder)
    answers = _answers(root)
    all_rows = all_checked(_EgoSchemaRow, records(path))
    rows = [(place, row) for place, row in all_rows if not subset or row.uid in answers]
    videos = [
        video(place, name=row.uid, file=video_in(root, row.uid, place, "videos", "."))
        for place, row in rows
    ]
    questions = [_question(place, row, answers.get(row.uid, "")) for place, row in rows]
    return dataset("egoschema-subset" if subset else "egoschema", str(path), videos, questions)


def _answers(root: Path) -> dict[str, str]:
    """Return the letters of the right options by question."""
    path = file_in(root, ANSWERS)
    answers = json_of(path)
    if not isinstance(answers, dict):
        raise InputError(f"{path} is no object of answers by question")
    for uid, place in answers.items():
        if not isinstance(place, int) or not 0 <= place <= 4:
            raise InputError(f"{path}, {uid}: {place!r} is no option from 0 to 4")
    return {uid: letter(place) for uid, place in answers.items()}


def _question(place: str, row: _EgoSchemaRow, answer: str) -> EvalQuestion:
    return question(
        place,
        id=row.uid,
        video=row.uid,
        question=row.question,
        options=row.options,
        answer=answer,
    )


def _source(name: str, title: str, subset: bool, size: int) -> DatasetSource:
    return DatasetSource(
        name=name,
        title=title,
        licence="Ego4D licence, for which you sign",
        where=(
            f"{QUESTIONS} and {ANSWERS} of github.com/egoschema/EgoSchema; its download.py fetches "
            "the clips into videos/, each named by its q_uid."
        ),
        read=partial(read, subset),
        published=Counts(videos=size, questions=size),
    )


SOURCES = (
    _source("egoschema", "EgoSchema (500 of the answers are public)", False, 5031),
    _source("egoschema-subset", "EgoSchema, the questions with public answers", True, 500),
)
