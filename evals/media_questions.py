"""Questions about real clips, with the spans in which the answer is said or shown."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

from pydantic import Field, field_validator

from domain.base import Frozen
from evals.question_files import read_question_file
from evals.scores import Span
from graphs.batch import BatchQuestion


class MediaQuestion(Frozen):
    """A question about the clip ``video``, a file in the folder of the questions."""

    id: str
    video: str
    question: str
    answer: str
    spans_s: tuple[Span, ...] = Field(min_length=1)
    source: str = ""
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer_option: str | None = Field(default=None, pattern=r"^[A-Z]$")

    @field_validator("video")
    @classmethod
    def _file_name_only(cls, name: str) -> str:
        if Path(name).name != name or name in ("", ".", ".."):
            raise ValueError("a video is named by its file name alone")
        return name

    @property
    def chance(self) -> float:
        """Return the share right by guessing; 0 without options."""
        return 1 / len(self.options) if self.options else 0.0

    def is_right(self, option: str | None) -> bool:
        """Check whether this letter is the right option's."""
        return option is not None and option == self.right

    @property
    def right(self) -> str:
        """Return the letter of the right option."""
        if self.answer_option or self.answer not in self.options:
            return self.answer_option or ""
        return ascii_uppercase[self.options.index(self.answer)]

    def is_cited(self, span: Span) -> bool:
        """Check whether a cited span overlaps a marked one."""
        return any(start < span[1] and span[0] < end for start, end in self.spans_s)

    def to_batch_question(self, video: str) -> BatchQuestion:
        """Return the question for a batch, about the video with this id."""
        return BatchQuestion(id=self.id, video=video, question=self.question, options=self.options)


class _MediaFile(Frozen):
    about: str = ""
    questions: tuple[MediaQuestion, ...] = Field(min_length=1)


def read_media_questions(path: Path) -> tuple[MediaQuestion, ...]:
    """Read the questions of a JSON file with ``questions``.

    Raises:
        InputError: the file cannot be read as such.
    """
    return read_question_file(path, _MediaFile, "questions about media").questions
