"""Identities recognised across clips, and the characters they form."""

from __future__ import annotations

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.media import IdentityKind


class Identity(Frozen):
    """A face or a voice known across clips; ``tag`` is how models see it (``<face_3>``)."""

    id: PositiveInt
    kind: IdentityKind
    number: NonNegativeInt
    first_clip: NonNegativeInt

    @property
    def tag(self) -> str:
        """The identity's tag in prompts and memories."""
        return f"<{self.kind}_{self.number}>"


class IdentityStatement(Frozen):
    """``face`` is ``voice``: said by a writer, or seen by co-occurrence, with its support."""

    face: NonNegativeInt
    voice: NonNegativeInt
    clip: NonNegativeInt
    support: float = Field(gt=0)
    reason: str


class Character(Frozen):
    """A person: faces and at most one set of voices under one number for ever."""

    number: NonNegativeInt
    name: str | None = None
    faces: tuple[NonNegativeInt, ...] = ()
    voices: tuple[NonNegativeInt, ...] = ()

    @property
    def tag(self) -> str:
        """The character's tag in prompts and memories."""
        return f"<character_{self.number}>"

    @property
    def label(self) -> str:
        """The known name, else the tag."""
        return self.name or self.tag
