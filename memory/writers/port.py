"""The ports of the clip writer and the event writer, with their inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.media import KEYFRAMES_ONLY, ClipView, Percept
from domain.memories import (
    ClipMemories,
    Memory,
    MemorySource,
    OpenEdge,
    OpenSegment,
    with_attribution,
)
from domain.time import TimeSpan
from memory.patches import WrittenPatch
from models.chat import Replay, Sink
from people.characters import ClipPeople


@dataclass(frozen=True)
class ClipContext:
    """A clip writer's input besides the percept and its people.

    Attributes:
        video: The video's id.
        title: The video's title.
        facts: Open semantic memories about the clip's people, oldest first.
        blobs: JPEG bytes of the clip's keyframes and face crops, by SHA-256.
        sink: Receives every model call, to record it.
        replay: Returns recorded replies of an interrupted run.
        before: For rules the previous clip's memories, if some may continue in this clip; for a
            model the last lines of the last clip that is known.
        view: What a model is shown besides keyframes.
    """

    video: str
    title: str = ""
    facts: tuple[Memory, ...] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    sink: Sink | None = None
    replay: Replay | None = None
    before: tuple[Memory, ...] = ()
    view: ClipView = KEYFRAMES_ONLY


class ClipWriter(Protocol):
    """Writes the memories of one clip."""

    source: str
    """Source of the names it states: ``model``; empty if it depends on the name."""
    wants_context: bool
    """Whether it uses the context, which has to be read from the store."""

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Return the lines worth remembering, with tags of ``people`` only.

        Raises:
            ModelError: the memory could not be written; the clip counts as failed.
        """


@dataclass(frozen=True)
class WindowLine:
    """One remembered line of a window.

    Attributes:
        clip: Its clip.
        span: When.
        text: The words, with tags replaced by known names.
        speaker: Who said it: a name or a tag.
        source: The source of the memory.
        vector: Its embedding, shape (D,).
        tags: The people it mentions.
        fact: Whether it tells what is so, not what happens.
    """

    clip: int
    span: TimeSpan
    text: str
    source: MemorySource
    vector: Sequence[float] | NDArray[np.float32] = field(repr=False, compare=False)
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    fact: bool = False

    @property
    def attributed_text(self) -> str:
        """The words with who said them, or where they were read."""
        if self.source == MemorySource.READ and not self.tags:
            return f"On screen: {self.text}"
        if self.source in (MemorySource.SUBTITLE, MemorySource.CHAPTER):
            return with_attribution(self.text, self.source, self.speaker)
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class EventWindow:
    """An event writer's input for one window (section 3.3).

    Attributes:
        video: The video's id.
        at_clip: The clip after which the patch will hold.
        clips: The span of each clip that is new, or in a previous or related segment.
        new: The clips that the patch must cover, in order.
        lines: The memories of the new clips, in order of time.
        before: The memories of the open segment's clips, the last of ``previous``.
        previous: The segments of the previous patch, by number; the last is the open one.
        edges: The edges between them.
        related: Earlier segments close to the new clips, for long-range edges.
        people: Who was known after the window.
        sink: Receives every model call, to record it.
        replay: Returns recorded replies of an interrupted run.
    """

    video: str
    at_clip: int
    clips: Mapping[int, TimeSpan]
    new: tuple[int, ...]
    lines: tuple[WindowLine, ...] = ()
    before: tuple[WindowLine, ...] = ()
    previous: tuple[OpenSegment, ...] = ()
    edges: tuple[OpenEdge, ...] = ()
    related: tuple[OpenSegment, ...] = ()
    people: ClipPeople = field(default_factory=ClipPeople)
    sink: Sink | None = None
    replay: Replay | None = None

    def span(self, clips: Collection[int]) -> TimeSpan:
        """Return the span from the first to the last of some of its clips."""
        return reduce(TimeSpan.union, (self.clips[clip] for clip in clips))


class EventWriter(Protocol):
    """Writes the patch of the event graph for one window."""

    @property
    def name(self) -> str:
        """Return who writes, for the record: ``domain.built.RULES``, or a model by name."""

    def patch(self, window: EventWindow) -> WrittenPatch:
        """Segments that cover the window's new clips, and edges between segments.

        Raises:
            ModelError: no patch could be written.
        """

    def repair(
        self, window: EventWindow, patch: WrittenPatch, complaints: Sequence[str]
    ) -> WrittenPatch:
        """Return a whole new patch in place of ``patch`` that answers every complaint.

        Raises:
            ModelError: no patch could be written.
        """


@dataclass(frozen=True)
class Writers:
    """The two writers of a profile."""

    clip: ClipWriter
    event: EventWriter
