"""What a person says about the people of a video, laid over what was learned."""

from __future__ import annotations

from enum import StrEnum

from pydantic import NonNegativeInt, PositiveInt

from domain.base import Frozen


class CorrectionKind(StrEnum):
    """What a person did."""

    RENAME = "rename"
    MERGE = "merge"
    SPLIT = "split"
    APART = "apart"


class CorrectedCharacter(Frozen):
    """How one character is from a correction on.

    Attributes:
        number: The character.
        members: Tags of the faces and voices that are this character for good; others may join.
            Where two were said to be apart, those that the character had then.
        names: What a person calls it, the preferred name first; empty: as it is learned.
        nameless: Tags whose learned names are set aside.
        others: Tags of faces and voices that are not this character.
    """

    number: NonNegativeInt
    members: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Correction(Frozen):
    """One thing that a person did; numbers count up within a video and are not given again.

    Attributes:
        number: Its number.
        kind: What was done.
        told: What was done, in words.
        numbers: The characters that it speaks of; a later one about any of them builds on it.
        outcomes: How those characters are from then on.
        undone: Whether it was taken back.
    """

    number: PositiveInt
    kind: CorrectionKind
    told: str
    numbers: tuple[NonNegativeInt, ...]
    outcomes: tuple[CorrectedCharacter, ...]
    undone: bool = False
