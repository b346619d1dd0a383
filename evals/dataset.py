"""A data set as an evaluation sees it: its videos, and one model of question for all sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Self

from pydantic import AfterValidator, Field, NonNegativeInt, model_validator
from pydantic.dataclasses import dataclass

from domain.asking import Answer, Citation
from domain.base import Frozen
from domain.time import TimeSpan
from domain.words import first_number

Span = tuple[float, float]
"""Start and end in seconds of video time."""


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


def _pattern(words: str) -> str:
    try:
        re.compile(words)
    except re.error as error:
        raise ValueError(f"{words!r} is no regular expression: {error}") from error
    return words


class Conditions(Frozen):
    """What counts as right without a model; all given conditions must hold.

    ``words``: regular expressions that the text must all match; ``number``: the least and the most
    for the first number in it. ``spans_s``: some citation overlaps one of them; ``top_s``: the
    first citation does; ``every_s``: each is overlapped by a citation. ``declined``: memory cannot
    hold the answer without a vision model, so that declining is right: alone, if it is the only
    condition, else beside an answer that meets the others.
    """

    words: tuple[Annotated[str, AfterValidator(_pattern)], ...] = ()
    number: tuple[int, int] | None = None
    spans_s: tuple[Span, ...] = ()
    top_s: tuple[Span, ...] = ()
    every_s: tuple[Span, ...] = ()
    declined: bool = False

    def met_by(self, answer: Answer) -> bool:
        if answer.not_in_memory or self == Conditions(declined=True):
            return self.declined and answer.not_in_memory
        number = first_number(answer.text) if self.number else None
        cited = answer.citations
        return (
            all(re.search(pattern, answer.text, re.I | re.S) for pattern in self.words)
            and (not self.number or number in range(self.number[0], self.number[1] + 1))
            and (not self.spans_s or _touch(cited, self.spans_s))
            and (not self.top_s or _touch(cited[:1], self.top_s))
            and all(_touch(cited, [span]) for span in self.every_s)
        )


def _touch(cited: Sequence[Citation], spans: Sequence[Span]) -> bool:
    return any(
        one.span.start_ms < end * 1000 and start * 1000 < one.span.end_ms
        for one in cited
        for start, end in spans
    )


class EvalQuestion(Frozen):
    """One question. ``answer`` is the right option's letter, or the reference's own words.

    ``types`` are the set's own. ``as_of_ms``: the video time as of which the set asks it, if any.
    ``spans``: where the answer is said or shown, if the set says. ``answer`` is empty if the set
    keeps it secret: such an answer stays unjudged. ``right``: what an answer without options is to
    meet, instead of saying what ``answer`` says.
    """

    id: str = Field(min_length=1)
    video: str = Field(min_length=1)
    question: str = Field(min_length=1)
    options: tuple[str, ...] = Field(default=(), max_length=26)
    answer: str = ""
    types: tuple[str, ...] = ()
    as_of_ms: NonNegativeInt | None = None
    spans: tuple[TimeSpan, ...] = ()
    right: Conditions | None = None

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


class QuestionSet(StrEnum):
    """Homer's sets of questions over the shared clips.

    What people ask first, what is seen, and everyday questions on the half of the clips that rules
    are worked out on, and on the half that is looked at once, when a change is done.
    """

    FIRST = "first"
    SEEN = "seen"
    WORK = "everyday_work"
    HELD = "everyday_held"


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

    ``read(name, folder)`` reads the published files; ``published`` is their size. ``submission``
    turns chosen letters by question id into the JSON that its leaderboard reads; None: there is
    none.

    Raises:
        InputError: by ``read``: a file is missing or not as published.
    """

    name: str
    title: str
    licence: str
    where: str
    read: Annotated[Callable[[str, Path], Dataset], Field(exclude=True)]
    published: Counts = Counts()
    submission: Annotated[Callable[[Mapping[str, str]], object] | None, Field(exclude=True)] = None
