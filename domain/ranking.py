"""The moments of a view that a question is about, as the memory ranks them."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from domain.asking import Evidence
from domain.base import Frozen
from domain.structure import Structure
from domain.time import TimeSpan


class Aim(Frozen):
    """What a search is for, besides its query.

    ``text`` are the words that the whole view is ranked by; ``options`` those of the question, by
    which every piece of evidence is weighed; ``letters`` the options that this search is about,
    none: all of them. ``moments`` is how many of the whole view are listed at most. ``structure``
    is what is asked of how the video is built, None for an ordinary question.
    """

    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    moments: NonNegativeInt = 0
    structure: Structure | None = None


class Weighed(Frozen):
    """How strongly one piece of evidence speaks for each option, in the order of the question.

    In standard deviations added up; only the differences between them mean anything.
    """

    ref: str
    scores: tuple[float, ...]


class OptionSupport(Frozen):
    """How well memory supports one option. ``share`` are positive and sum to 1 over the options.

    ``evidence`` are the refs that speak for the option, best first.
    """

    letter: str = Field(pattern=r"^[A-Z]$")
    text: str
    score: float
    share: float = Field(ge=0, le=1)
    evidence: tuple[str, ...] = ()


class Extract(Frozen):
    """The words of memory that answer an open question best, quoted whole sentences.

    ``refs`` are the lines they come from, in time; ``score`` as that of evidence.
    """

    text: str
    refs: tuple[str, ...]
    video: str
    span: TimeSpan
    score: float = Field(ge=0, le=1)


class Ranking(Frozen):
    """The moments of a view that a question is about, best first, as narrow spans.

    ``evidence`` holds at most one line a clip (the best of its moment), scores falling.
    ``options`` has one entry an option, in the order of the question; empty without options.
    ``extract`` quotes what answers an open question; None with options or where nothing is close.
    """

    question: str
    evidence: tuple[Evidence, ...] = ()
    options: tuple[OptionSupport, ...] = ()
    extract: Extract | None = None
    nothing_close: bool = False
    span: TimeSpan | None = Field(default=None, description="the time that was searched")
