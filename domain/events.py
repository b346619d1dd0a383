"""The event graph: segments of clips, joined by temporal and causal edges, changed by patches."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.time import TimeSpan


class EdgeType(StrEnum):
    """The two families of relations."""

    TEMPORAL = "temporal"
    CAUSAL = "causal"


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
        """The family this relation belongs to."""
        temporal = (Relation.BEFORE, Relation.OVERLAP, Relation.CONCURRENT, Relation.CONTAINS)
        return EdgeType.TEMPORAL if self in temporal else EdgeType.CAUSAL


class SegmentDraft(Frozen):
    """A segment as a writer proposes it; ``extends`` is the label of the one it replaces."""

    label: str = Field(min_length=1)
    summary: str
    clips: tuple[NonNegativeInt, ...]
    extends: str | None = None


class EdgeDraft(Frozen):
    """An edge as a writer proposes it, between segment labels. ``removed`` closes it."""

    source: str
    target: str
    relation: str
    explicit: bool = False
    confidence: float = 0.5
    rationale: str = ""
    evidence: tuple[NonNegativeInt, ...] = ()
    removed: bool = False


class EventPatch(Frozen):
    """The change to the event graph that a writer proposes after a window of clips."""

    segments: tuple[SegmentDraft, ...] = ()
    edges: tuple[EdgeDraft, ...] = ()


class Segment(Frozen):
    """A segment as a view shows it: the revision that held at the view's clip."""

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
        """How an answer cites this segment."""
        return f"[s{self.id}]"


class Edge(Frozen):
    """An edge as a view shows it, between segment ids."""

    id: PositiveInt
    source: PositiveInt
    target: PositiveInt
    relation: Relation
    explicit: bool
    confidence: float = Field(ge=0, le=1)
    rationale: str
    evidence: tuple[NonNegativeInt, ...] = ()
