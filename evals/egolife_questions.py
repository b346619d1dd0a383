"""EgoLifeQA: four-choice questions about a week, each asked as of a moment of it."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

from pydantic import Field

from domain.base import Frozen
from evals.question_files import read_question_file
from evals.scores import Cells, Span, cells
from graphs.batch import BatchQuestion
from memory.captions import DAY_S

CAPTIONS, QUESTIONS = "captions.jsonl.gz", "questions.json"
"""The files of the data set."""
TITLE = "egolife"

DAYS = 366
"""Limit of day numbers; more than a year is taken as an error."""


class DayTime(Frozen):
    """A second of a day; days count from 1."""

    day: int = Field(ge=1, le=DAYS)
    second: float = Field(ge=0, le=DAY_S)

    @property
    def video_s(self) -> float:
        """Return the seconds of video time."""
        return (self.day - 1) * DAY_S + self.second


class TargetSpan(Frozen):
    """A span in which the answer can be seen or heard."""

    day: int = Field(ge=1, le=DAYS)
    start: float = Field(ge=0, le=DAY_S)
    end_day: int = Field(ge=1, le=DAYS)
    end: float = Field(ge=0, le=DAY_S)

    @property
    def span(self) -> Span:
        """Return the span in seconds of video time."""
        start = DayTime(day=self.day, second=self.start)
        return start.video_s, DayTime(day=self.end_day, second=self.end).video_s


class EgoQuestion(Frozen):
    """One question; ``answer`` is the letter of the right option."""

    id: str
    type: str
    question: str
    options: tuple[str, ...] = Field(min_length=2, max_length=26)
    answer: str = Field(pattern=r"^[A-Z]$")
    as_of: DayTime
    targets: tuple[TargetSpan, ...]

    @property
    def target(self) -> Cells:
        """Return the grid cells of all targets."""
        return cells(target.span for target in self.targets)

    @property
    def right(self) -> int:
        """Return the index of the right option."""
        return ascii_uppercase.index(self.answer)

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch."""
        return BatchQuestion(
            id=self.id,
            video=video,
            question=self.question,
            options=self.options,
            as_of_s=self.as_of.video_s,
        )


class _EgoLifeFile(Frozen):
    source: str = ""
    questions: tuple[EgoQuestion, ...] = Field(min_length=1)


def read_ego_questions(path: Path) -> tuple[EgoQuestion, ...]:
    """Read the questions of a file: a JSON list, or an object with ``questions``.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _EgoLifeFile, "EgoLife questions").questions
