"""First questions, each with what counts as right, judged without a model."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field, field_validator

from domain.base import Frozen
from domain.texts import first_number
from evals.asking import spans_of
from evals.question_files import read_question_file
from evals.scores import Span
from graphs.batch import BatchQuestion

_SETS = Path(__file__).parent / "sets"


class QuestionSet(StrEnum):
    """The sets of questions over the shared clips.

    What people ask first, what is seen, and everyday questions on the half of the clips that rules
    are worked out on, and on the half that is looked at once, when a change is done.
    """

    FIRST = "first"
    SEEN = "seen"
    WORK = "everyday_work"
    HELD = "everyday_held"

    @property
    def path(self) -> Path:
        """The set's JSON file."""
        return _SETS / f"{self}_questions.json"


class RightAnswer(Frozen):
    """What counts as right; all given conditions must hold.

    ``words``: regular expressions that the text must all match; ``number``: the least and the most
    for the first number in it. ``spans_s``: some citation overlaps one of them; ``top_s``: the
    first citation does; ``every_s``: each is overlapped by a citation. ``declined``: memory cannot
    hold the answer without a vision model, so that declining is right: alone, if it is the only
    condition, else beside an answer that meets the others.
    """

    words: tuple[str, ...] = ()
    number: tuple[int, int] | None = None
    spans_s: tuple[Span, ...] = ()
    top_s: tuple[Span, ...] = ()
    every_s: tuple[Span, ...] = ()
    option: str | None = Field(default=None, pattern=r"^[A-Z]$")
    declined: bool = False

    def met_by(self, line: dict[str, Any]) -> bool:
        """Check whether an answer line is right."""
        declines = bool(line.get("not_in_memory"))
        if declines or self == _ONLY_DECLINED:
            return self.declined and declines
        return self._says(line) and self._cites(spans_of(line, "citations"))

    def _says(self, line: dict[str, Any]) -> bool:
        text = line["answer"]
        number = first_number(text) if self.number else None
        return (
            (self.option is None or line.get("option") == self.option)
            and all(re.search(pattern, text, re.I | re.S) for pattern in self.words)
            and (not self.number or number in range(self.number[0], self.number[1] + 1))
        )

    def _cites(self, cited: list[Span]) -> bool:
        return (
            (not self.spans_s or touches(cited, self.spans_s))
            and (not self.top_s or touches(cited[:1], self.top_s))
            and all(touches(cited, [span]) for span in self.every_s)
        )


_ONLY_DECLINED = RightAnswer(declined=True)


def touches(
    spans: list[Span] | tuple[Span, ...], other_spans: list[Span] | tuple[Span, ...]
) -> bool:
    """Check whether any two spans overlap."""
    return any(a < d and c < b for a, b in spans for c, d in other_spans)


class FirstQuestion(Frozen):
    """A question about the clip ``video``, a file in the folder of clips or below it."""

    id: str
    video: str
    kind: str
    question: str
    options: tuple[str, ...] = Field(default=(), max_length=26)
    right: RightAnswer

    @field_validator("video")
    @classmethod
    def _below_the_folder(cls, name: str) -> str:
        path = PurePosixPath(name)
        if not path.name or path.is_absolute() or ".." in path.parts or str(path) != name:
            raise ValueError("a video is named by its path below the folder of clips")
        return name

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch, about the video with this id."""
        return BatchQuestion(id=self.id, video=video, question=self.question, options=self.options)


class _FirstFile(Frozen):
    about: str = ""
    questions: tuple[FirstQuestion, ...] = Field(min_length=1)


def read_first_questions(path: Path = QuestionSet.FIRST.path) -> tuple[FirstQuestion, ...]:
    """Read the questions of a JSON file.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _FirstFile, "first questions").questions
