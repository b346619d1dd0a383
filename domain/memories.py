"""Memories: the lines remembered of a clip, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, NonNegativeInt, PlainSerializer, PositiveInt

from domain.base import Frozen
from domain.people import IdentityStatement
from domain.time import TimeSpan

SEPARATOR = " / "
"""What stands between lines of text on screen, in a line of memory."""


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
    SOUND = "sound"
    COLOURS = "colours"
    CAPTION = "caption"
    SUBTITLE = "subtitle"
    CHAPTER = "chapter"
    MODEL = "model"


PRESENCE_SOURCES = frozenset({MemorySource.SEEN, MemorySource.OBJECTS, MemorySource.COLOURS})
"""Sources that say who and what is in view, and in which colours."""

BACKGROUND_SOURCES = PRESENCE_SOURCES | {MemorySource.SOUND}
"""Sources that say what is there, seen or heard, but not what happens: events go by the others."""


def with_attribution(text: str, source: str, speaker: str | None) -> str:
    """Return a line's text prefixed with its speaker, or with where it comes from."""
    if source == MemorySource.CHAPTER:
        return f"Chapter: {text}"
    if source == MemorySource.SUBTITLE:
        return f"Subtitle, {speaker}: {text}" if speaker else f"Subtitle: {text}"
    return f"{speaker}: {text}" if source == MemorySource.SAID and speaker else text


class Line(Frozen):
    """A line of a clip. ``tags`` are like ``<face_3>`` or ``<character_1>``."""

    kind: MemoryKind
    text: str
    span: TimeSpan
    source: MemorySource
    tags: tuple[str, ...] = ()
    speaker: str | None = None


class MemoryDraft(Line):
    """A line that a writer proposes."""

    text: str = Field(min_length=1)
    contradicts: tuple[PositiveInt, ...] = Field(
        default=(), description="ids of older memories that this line supersedes"
    )


class KeyframeDescription(Frozen):
    """What a keyframe shows, in a sentence or two, people by tag; ``time_ms`` is the keyframe's."""

    time_ms: NonNegativeInt
    text: str = Field(min_length=1)


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
    descriptions: tuple[KeyframeDescription, ...] = Field(
        default=(), description="of keyframes, at most one of each"
    )
    dropped: tuple[str, ...] = Field(
        default=(), description="what the model wrote, or was to write, that cannot be stored"
    )


class Memory(Line):
    """A stored memory in a view."""

    id: PositiveInt
    video: str
    clip: NonNegativeInt
    weight: PositiveInt = 1

    @property
    def citation(self) -> str:
        return f"[m{self.id}]"


class EdgeType(StrEnum):
    """The two families of relations."""

    TEMPORAL = "temporal"
    CAUSAL = "causal"


# Section 3.3: the paper's vocabulary, four temporal and four causal relations.
class Relation(StrEnum):
    """The eight relations that an edge may state."""

    BEFORE = "before"
    OVERLAP = "overlap"
    CONCURRENT = "concurrent"
    CONTAINS = "contains"
    CAUSES = "causes"
    ENABLES = "enables"
    REQUIRES = "requires"
    PREVENTS = "prevents"

    @property
    def type(self) -> EdgeType:
        temporal = (Relation.BEFORE, Relation.OVERLAP, Relation.CONCURRENT, Relation.CONTAINS)
        return EdgeType.TEMPORAL if self in temporal else EdgeType.CAUSAL


class Segment(Frozen):
    """A segment in a view: the revision that is valid at the view's last clip."""

    id: PositiveInt
    video: str
    number: NonNegativeInt
    label: str
    summary: str
    clips: tuple[NonNegativeInt, ...]
    span: TimeSpan
    revision: NonNegativeInt = 0

    @property
    def citation(self) -> str:
        return f"[s{self.id}]"

    @property
    def places(self) -> list[tuple[str, int]]:
        """The video and the number of each of its clips."""
        return [(self.video, clip) for clip in self.clips]


SegmentId = Annotated[
    PositiveInt,
    BeforeValidator(lambda given: given.removeprefix("s") if isinstance(given, str) else given),
    PlainSerializer(lambda number: f"s{number}", return_type=str, when_used="json"),
]
"""The id of a segment, which is a ref in JSON, s3."""


class Edge(Frozen):
    """An edge in a view, between segment ids."""

    id: PositiveInt
    source: SegmentId
    target: SegmentId
    relation: Relation
    explicit: bool
    confidence: float = Field(ge=0, le=1)
    rationale: str
    evidence: tuple[NonNegativeInt, ...] = ()


@dataclass(frozen=True)
class AbsorbedSegment:
    """Label and summary of a segment that was merged into another."""

    number: int
    label: str
    summary: str
    at_clip: int


@dataclass(frozen=True)
class OpenSegment:
    """A segment to be changed; ``history`` are the segments it absorbed, in order.

    It may not be stored yet: so it goes by its number, and its span by its clips.
    """

    number: int
    revision: int
    label: str
    summary: str
    clips: tuple[int, ...]
    history: tuple[AbsorbedSegment, ...] = ()


EdgeKey = tuple[int, int, str]
"""The key of an edge: source number, target number, relation."""


@dataclass(frozen=True)
class OpenEdge:
    """An edge to be changed, between segment numbers."""

    source: int
    target: int
    relation: str
    explicit: bool
    confidence: float
    rationale: str
    evidence: tuple[int, ...]

    @property
    def key(self) -> EdgeKey:
        """Return source number, target number and relation, which identify the edge."""
        return (self.source, self.target, self.relation)


class Scope(Frozen):
    """One video up to and including clip ``last_clip``; -1 is nothing yet."""

    video: str
    last_clip: int = Field(ge=-1)


class MemoryView(Frozen):
    """The memory as it was after the last clip of each scope. Every read takes one.

    A memory is visible if its clip is in scope and it was not superseded within scope; a segment or
    edge revision if ``from_clip <= last_clip`` and it was not closed by then. ``as_of_ms`` is the
    moment of video time of the question, None if it is asked afterwards: "just now" and "yesterday"
    are relative to it. Visibility depends on the scopes alone.
    """

    scopes: tuple[Scope, ...] = Field(min_length=1)
    as_of_ms: NonNegativeInt | None = None

    @property
    def videos(self) -> tuple[str, ...]:
        return tuple(scope.video for scope in self.scopes)
