"""Structural questions: answered from order, people or counts instead of closeness."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from pydantic import Field, NonNegativeInt

from domain.base import Frozen
from domain.time import TimeSpan


class Asks(StrEnum):
    """What a structural question asks for.

    ``LOOKS``, ``NUMBER`` and ``ACTION`` can only be answered if somebody described or said it,
    ``THINGS`` also if a detector found some.
    """

    PEOPLE = "people"
    SPEAKERS = "speakers"
    COUNT = "count"
    ABOUT = "about"
    BEGINNING = "beginning"
    END = "end"
    FIRST = "first"
    LAST = "last"
    WHEREABOUTS = "whereabouts"
    AFTER = "after"
    BEFORE = "before"
    LOOKS = "looks"
    NUMBER = "number"
    ACTION = "action"
    THINGS = "things"


NEEDS_DESCRIPTION = frozenset({Asks.LOOKS, Asks.NUMBER, Asks.ACTION, Asks.THINGS})
"""What can only be answered from a description, a count, a thing detected, or somebody who says it.
"""


class Structure(Frozen):
    """A question read as a structural one.

    ``subject`` is the object, person or moment that is meant, in the question's words; ``manner``
    is ``said`` or ``shown``, empty for either.
    """

    asks: Asks
    subject: str = ""
    manner: str = ""


class StructurePart(Frozen):
    """One person, voice, moment or sentence of an answer, with the lines that show it.

    ``label`` is its name; ``seen`` and ``heard`` are its times. ``brief``: too short a time to be
    certain. ``text`` is a quotation.
    """

    label: str = ""
    text: str = ""
    refs: tuple[str, ...]
    seen: tuple[TimeSpan, ...] = ()
    heard: tuple[TimeSpan, ...] = ()
    brief: bool = False


class Finding(Frozen):
    """What a structural search found, in the order of an answer.

    ``together`` is the largest number of people shown at one time. ``exact``: matched word for
    word, or measured. ``unrecorded``: why memory cannot answer, empty if it can; ``parts`` are then
    the nearest moments. ``put``: a person replaced the lines, which are to be quoted. ``each`` are
    the findings of several videos, each with its ``title``; the whole has no parts of its own then.
    """

    asks: Asks
    subject: str = ""
    manner: str = ""
    parts: tuple[StructurePart, ...] = ()
    together: NonNegativeInt = 0
    exact: bool = True
    unrecorded: str = ""
    put: bool = False
    title: str = ""
    each: tuple[Finding, ...] = ()

    def restricted_to(self, refs: Collection[str]) -> Finding:
        """Return the finding restricted to these lines; parts without any line left are dropped."""
        restricted = (
            part.model_copy(update={"refs": tuple(ref for ref in part.refs if ref in refs)})
            for part in self.parts
        )
        each = (one.restricted_to(refs) for one in self.each)
        return self.model_copy(
            update={
                "parts": tuple(part for part in restricted if part.refs),
                "each": tuple(one for one in each if one.parts),
            }
        )


class Aim(Frozen):
    """What a search is for, besides its query.

    ``text`` is what the whole view is ranked by; ``options`` are those of the question, against
    which every piece of evidence is weighed; ``letters`` are the options that this search is about,
    empty for all. At most ``moments`` of the whole view are listed; with none, only the search for
    somebody's last appearance is unlike one without an aim. ``structure`` is a question about how
    the video is built, None for an ordinary one.
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


class Extract(Frozen):
    """The sentences of memory that answer an open question best, quoted whole.

    ``refs`` are the lines they come from, in order of time; ``score`` is as for evidence.
    """

    text: str
    refs: tuple[str, ...]
    video: str
    span: TimeSpan
    score: float = Field(ge=0, le=1)


class VideoQuote(Frozen):
    """What answers an open question best in one of several videos that were searched.

    ``close``: whether lines of it are close to the question; ``extract`` quotes them. ``event`` is
    the ref of its closest segment, "" where none is close.
    """

    video: str
    title: str
    close: bool
    extract: Extract | None = None
    event: str = ""

    @property
    def refs(self) -> tuple[str, ...]:
        """Return what an answer may cite of it."""
        event = (self.event,) if self.event else ()
        return (*event, *(self.extract.refs if self.extract else ()))
