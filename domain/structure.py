"""Structural questions: answered from order, people or counts instead of closeness."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from pydantic import NonNegativeInt

from domain.base import Frozen
from domain.time import TimeSpan


class Asks(StrEnum):
    """What a structural question asks for.

    ``LOOKS``, ``NUMBER`` and ``ACTION`` can only be answered if somebody described or said it.
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


NEEDS_DESCRIPTION = frozenset({Asks.LOOKS, Asks.NUMBER, Asks.ACTION})
"""What can only be answered from a description, a count, or somebody who says it."""


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
    the nearest moments. ``put``: a person replaced the lines, which are to be quoted.
    """

    asks: Asks
    subject: str = ""
    manner: str = ""
    parts: tuple[StructurePart, ...] = ()
    together: NonNegativeInt = 0
    exact: bool = True
    unrecorded: str = ""
    put: bool = False

    def restricted_to(self, refs: Collection[str]) -> Finding:
        """Return the finding restricted to these lines; parts without any line left are dropped."""
        restricted = (
            part.model_copy(update={"refs": tuple(ref for ref in part.refs if ref in refs)})
            for part in self.parts
        )
        return self.model_copy(update={"parts": tuple(part for part in restricted if part.refs)})
