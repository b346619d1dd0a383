"""Corrections: what a user says about the people of a video, laid over what was learned."""

from __future__ import annotations

from enum import StrEnum

from pydantic import NonNegativeInt, PositiveInt

from domain.base import Frozen


class CorrectionKind(StrEnum):
    """What kind of correction a user made."""

    RENAME = "rename"
    MERGE = "merge"
    SPLIT = "split"
    APART = "apart"


class CorrectedCharacter(Frozen):
    """The state of one character from a correction on.

    Attributes:
        number: The character.
        members: Tags of the faces and voices that are fixed to this character; others may join.
            After a split or apart, those that the character had then.
        names: Names given by the user, the preferred one first; empty: the learned names hold.
        nameless: Tags whose learned names are ignored.
        others: Tags of faces and voices that are not this character.
    """

    number: NonNegativeInt
    members: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Correction(Frozen):
    """One correction; numbers count up within a video and are never reused.

    Attributes:
        number: Its number.
        kind: What was done.
        told: What was done, in words.
        numbers: The characters concerned; a later correction of any of them builds on this one.
        outcomes: The states of those characters from then on.
        undone: Whether it was taken back.
    """

    number: PositiveInt
    kind: CorrectionKind
    told: str
    numbers: tuple[NonNegativeInt, ...]
    outcomes: tuple[CorrectedCharacter, ...]
    undone: bool = False
