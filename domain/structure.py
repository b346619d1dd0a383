"""Questions that are answered from how a video is built, not from its closest sentence."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from pydantic import NonNegativeInt

from domain.base import Frozen
from domain.time import TimeSpan


class Asks(StrEnum):
    """What such a question asks for.

    ``LOOKS``, ``NUMBER`` and ``ACTION`` can only be answered where somebody described or said it.
    """

    PEOPLE = "people"
    SPEAKERS = "speakers"
    COUNT = "count"
    ABOUT = "about"
    BEGINNING = "beginning"
    END = "end"
    FIRST = "first"
    LAST = "last"
    AFTER = "after"
    BEFORE = "before"
    LOOKS = "looks"
    NUMBER = "number"
    ACTION = "action"


DESCRIBED = frozenset({Asks.LOOKS, Asks.NUMBER, Asks.ACTION})
"""What takes a description of images, a count, or somebody who says it."""


class Structure(Frozen):
    """A question read as one about structure.

    ``subject`` is the thing, person or moment that is meant, in the question's words; ``manner``
    says whether it is about what is ``said`` or ``shown``, empty: either.
    """

    asks: Asks
    subject: str = ""
    manner: str = ""


class StructurePart(Frozen):
    """One person, voice, moment or sentence of an answer, and the lines that show it.

    ``label`` is how it is called; ``seen`` and ``heard`` are when. ``brief``: too short a time to
    be sure of. ``text`` is what is quoted.
    """

    label: str = ""
    text: str = ""
    refs: tuple[str, ...]
    seen: tuple[TimeSpan, ...] = ()
    heard: tuple[TimeSpan, ...] = ()
    brief: bool = False


class Finding(Frozen):
    """What a structural search found, in the order of an answer.

    ``together`` is the largest number of people shown at one time. ``exact``: by the very words, or
    by something that was measured. ``unrecorded``: why memory cannot answer, empty where it can;
    ``parts`` are then the nearest moments. ``put``: a person put other lines there, to be quoted.
    """

    asks: Asks
    subject: str = ""
    manner: str = ""
    parts: tuple[StructurePart, ...] = ()
    together: NonNegativeInt = 0
    exact: bool = True
    unrecorded: str = ""
    put: bool = False

    def of_those(self, refs: Collection[str]) -> Finding:
        """What is left where only these lines are: parts without any line are gone."""
        kept = (
            part.model_copy(update={"refs": tuple(ref for ref in part.refs if ref in refs)})
            for part in self.parts
        )
        return self.model_copy(update={"parts": tuple(part for part in kept if part.refs)})
