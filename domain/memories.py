"""Memories: the lines remembered of a clip, each with its source."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.people import IdentityStatement
from domain.time import TimeSpan


class MemoryKind(StrEnum):
    """Episodic (what happened) or one of the four semantic kinds."""

    EPISODIC = "episodic"
    CHARACTER = "character"
    RELATION = "relation"
    PLOT = "plot"
    KNOWLEDGE = "knowledge"


class MemorySource(StrEnum):
    """The source of a memory."""

    SAID = "said"
    READ = "read"
    SEEN = "seen"
    OBJECTS = "objects"
    CAPTION = "caption"
    SUBTITLE = "subtitle"
    CHAPTER = "chapter"
    MODEL = "model"


PRESENCE_SOURCES = frozenset({MemorySource.SEEN, MemorySource.OBJECTS})
"""Sources that say who and what is in view but not what happens: no part of events or summaries."""


def with_attribution(text: str, source: str, speaker: str | None) -> str:
    """Return a line's text prefixed with its speaker, or with where it comes from."""
    if source == MemorySource.CHAPTER:
        return f"Chapter: {text}"
    if source == MemorySource.SUBTITLE:
        return f"Subtitle, {speaker}: {text}" if speaker else f"Subtitle: {text}"
    return f"{speaker}: {text}" if source == MemorySource.SAID and speaker else text


class MemoryDraft(Frozen):
    """A line that a writer proposes. ``tags`` are like ``<face_3>`` or ``<character_1>``."""

    kind: MemoryKind
    text: str = Field(min_length=1)
    span: TimeSpan
    source: MemorySource
    tags: tuple[str, ...] = ()
    speaker: str | None = None
    contradicts: tuple[PositiveInt, ...] = Field(
        default=(), description="ids of older memories that this line supersedes"
    )


class ClipMemories(Frozen):
    """What a writer returns for one clip."""

    drafts: tuple[MemoryDraft, ...]
    statements: tuple[IdentityStatement, ...] = ()
    names: tuple[tuple[str, str], ...] = Field(
        default=(), description="(tag, name) pairs that the clip itself states"
    )
    budget: PositiveInt | None = Field(
        default=None, description="tokens it might take; None: no language model wrote it"
    )
    left_out: tuple[str, ...] = Field(
        default=(), description="what its model was not shown, to stay within the budget"
    )


class Memory(Frozen):
    """A stored memory in a view."""

    id: PositiveInt
    video: str
    clip: NonNegativeInt
    kind: MemoryKind
    text: str
    span: TimeSpan
    source: MemorySource
    weight: PositiveInt = 1
    speaker: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def citation(self) -> str:
        """The citation of this memory in an answer."""
        return f"[m{self.id}]"
