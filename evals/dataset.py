"""A data set as an evaluation sees it: its videos, and one model of question for all sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, model_validator
from pydantic.dataclasses import dataclass

from domain.base import Frozen
from domain.time import TimeSpan


class EvalVideo(Frozen):
    """A video of a data set. ``name`` is the set's own; ``file`` or ``captions`` may be missing.

    ``captions``: timed words for ``homer import``, for a set without videos; ``among``: the file
    holds other videos as well, and its lines name their video.
    """

    name: str = Field(min_length=1)
    file: Path | None = None
    captions: Path | None = None
    among: bool = False
    url: str = ""


class EvalQuestion(Frozen):
    """One question. ``answer`` is the right option's letter, or the reference's own words.

    ``types`` are the set's own. ``as_of_ms``: the video time as of which the set asks it, if any.
    ``spans``: where the answer is said or shown, if the set says. ``answer`` is empty if the set
    keeps it secret: such an answer stays unjudged.
    """

    id: str = Field(min_length=1)
    video: str = Field(min_length=1)
    question: str = Field(min_length=1)
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer: str = ""
    types: tuple[str, ...] = ()
    as_of_ms: NonNegativeInt | None = None
    spans: tuple[TimeSpan, ...] = ()

    @model_validator(mode="after")
    def _answer_is_an_option(self) -> Self:
        letters = ascii_uppercase[: len(self.options)]
        if self.options and self.answer and self.answer not in tuple(letters):
            raise ValueError(f"the answer {self.answer!r} is none of the options {letters}")
        return self


@dataclass(frozen=True)
class Dataset:
    """A data set that was read: its videos with questions, and the questions, in order.

    ``baseline``: its results are compared with those of ``evals.baseline``.
    """

    name: str
    videos: tuple[EvalVideo, ...]
    questions: tuple[EvalQuestion, ...]
    baseline: bool = False


@dataclass(frozen=True)
class Counts:
    """The published size of a data set; None and absent: not published.

    ``types`` counts the questions of a type; a question may have several.
    """

    videos: int | None = None
    questions: int | None = None
    types: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetSource:
    """A data set that Homer can read. ``where`` says how to get it and lay it out.

    ``read(folder)`` reads the published files; ``published`` is their size. ``submission`` turns
    chosen letters by question id into the JSON that its leaderboard reads; None: there is none.

    Raises:
        InputError: by ``read``: a file is missing or not as published.
    """

    name: str
    title: str
    licence: str
    where: str
    read: Annotated[Callable[[Path], Dataset], Field(exclude=True)]
    published: Counts = Counts()
    submission: Annotated[Callable[[Mapping[str, str]], object] | None, Field(exclude=True)] = None
