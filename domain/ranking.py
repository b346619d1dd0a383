"""Rankings: the moments of a view that fit a question, and support for its options."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt

from domain.asking import Evidence
from domain.base import Frozen
from domain.structure import Structure
from domain.time import TimeSpan


class Aim(Frozen):
    """What a search is for, besides its query.

    ``text`` is what the whole view is ranked by; ``options`` are those of the question, against
    which every piece of evidence is weighed; ``letters`` are the options that this search is about,
    empty for all. At most ``moments`` of the whole view are listed. ``structure`` is a question
    about how the video is built, None for an ordinary one.
    """

    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    moments: NonNegativeInt = 0
    structure: Structure | None = None


class Weighed(Frozen):
    """How strongly one piece of evidence speaks for each option, in the order of the question.

    Sums of standard deviations; only the differences between them have a meaning.
    """

    ref: str
    scores: tuple[float, ...]


class OptionSupport(Frozen):
    """How well memory supports one option. Shares are positive and sum to 1 over the options.

    ``evidence`` are the refs that speak for the option, best first.
    """

    letter: str = Field(pattern=r"^[A-Z]$")
    text: str
    score: float
    share: float = Field(ge=0, le=1)
    evidence: tuple[str, ...] = ()


class Extract(Frozen):
    """The sentences of memory that answer an open question best, quoted whole.

    ``refs`` are the lines they come from, in order of time; ``score`` is as for evidence.
    """

    text: str
    refs: tuple[str, ...]
    video: str
    span: TimeSpan
    score: float = Field(ge=0, le=1)


class Ranking(Frozen):
    """The moments of a view that fit a question, best first, as narrow spans.

    ``evidence`` holds at most one line a clip (the best of its moment), scores falling.
    ``options`` has one entry an option, in the order of the question; empty without options.
    ``extract`` quotes what answers an open question; None with options or if nothing is close.
    """

    question: str
    evidence: tuple[Evidence, ...] = ()
    options: tuple[OptionSupport, ...] = ()
    extract: Extract | None = None
    nothing_close: bool = False
    span: TimeSpan | None = Field(default=None, description="the time that was searched")
