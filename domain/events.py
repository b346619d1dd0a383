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
        """The family of this relation."""
        temporal = (Relation.BEFORE, Relation.OVERLAP, Relation.CONCURRENT, Relation.CONTAINS)
        return EdgeType.TEMPORAL if self in temporal else EdgeType.CAUSAL


class SegmentDraft(Frozen):
    """A segment proposed by a writer; ``extends`` is the label of the segment it replaces."""

    label: str = Field(min_length=1)
    summary: str
    clips: tuple[NonNegativeInt, ...]
    extends: str | None = None


class EdgeDraft(Frozen):
    """An edge proposed by a writer, between segment labels. ``removed`` closes it."""

    source: str
    target: str
    relation: str
    explicit: bool = False
    confidence: float = 0.5
    rationale: str = ""
    evidence: tuple[NonNegativeInt, ...] = ()
    removed: bool = False


class EventPatch(Frozen):
    """A change to the event graph proposed by a writer after a window of clips."""

    segments: tuple[SegmentDraft, ...] = ()
    edges: tuple[EdgeDraft, ...] = ()


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
        """The citation of this segment in an answer."""
        return f"[s{self.id}]"


class Edge(Frozen):
    """An edge in a view, between segment ids."""

    id: PositiveInt
    source: PositiveInt
    target: PositiveInt
    relation: Relation
    explicit: bool
    confidence: float = Field(ge=0, le=1)
    rationale: str
    evidence: tuple[NonNegativeInt, ...] = ()
