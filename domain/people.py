"""Identities recognised across clips, and the characters they form."""

from __future__ import annotations

import re

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.media import IdentityKind

TAG = re.compile(r"<(face|voice|character)_(\d{1,9})>")
"""How a person without a known name is written in memories, prompts and answers."""

_WHO = {"face": "person", "voice": "speaker"}


def untagged(text: str) -> str:
    """``text`` that was said or read, in which nothing passes for a tag: ``‹face_1›``."""
    return TAG.sub(r"‹\1_\2›", text) if "<" in text else text


def in_words(text: str) -> str:
    """``text`` as people read it: ``<voice_1>`` is "an unnamed speaker (voice 1)"."""

    def told(tag: re.Match[str]) -> str:
        start = "An" if tag.start() == 0 else "an"
        return f"{start} unnamed {_WHO.get(tag[1], 'person')} ({tag[1]} {tag[2]})"

    return TAG.sub(told, text) if "<" in text else text


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
    """``face`` is ``voice``: said by a writer, or seen by co-occurrence, with its support.

    ``by_model``: a language model says so, and nothing that was perceived.
    """

    face: NonNegativeInt
    voice: NonNegativeInt
    clip: NonNegativeInt
    support: float = Field(gt=0)
    reason: str
    by_model: bool = False


class Character(Frozen):
    """A person: faces and at most one set of voices under one number for ever.

    ``aliases`` are names that a person replaced; what was written before still has them.
    ``joined`` are numbers of characters that became part of this one, its own aside.
    """

    number: NonNegativeInt
    name: str | None = None
    faces: tuple[NonNegativeInt, ...] = ()
    voices: tuple[NonNegativeInt, ...] = ()
    aliases: tuple[str, ...] = ()
    joined: tuple[NonNegativeInt, ...] = ()

    @property
    def tag(self) -> str:
        """The character's tag in prompts and memories."""
        return f"<character_{self.number}>"

    @property
    def label(self) -> str:
        """The known name, else the tag."""
        return self.name or self.tag

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag that stands for this person: the character's own, and of what it is made of."""
        return (
            self.tag,
            *(f"<character_{number}>" for number in self.joined),
            *(f"<face_{number}>" for number in self.faces),
            *(f"<voice_{number}>" for number in self.voices),
        )

    def shown(self, tag: str) -> str:
        """How readers see one of this person's tags: one and the same person has one name.

        That is the known name. Without one a face or voice that is all there is of a person keeps
        its own tag, which says whether somebody was seen or heard; who has several goes by number.
        """
        if self.name:
            return self.name
        alone = len(self.faces) + len(self.voices) <= 1
        return tag if alone and not tag.startswith("<character_") else self.tag
