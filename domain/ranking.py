"""The moments of a view that a question is about, as the memory ranks them."""

from __future__ import annotations

from pydantic import Field

from domain.asking import Evidence
from domain.base import Frozen
from domain.time import TimeSpan


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
