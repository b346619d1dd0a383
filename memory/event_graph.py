"""The open event graph and the change that a checked patch makes (section 3.3); pure.

Only the part of the graph that a patch touches is needed: segments it names or shares clips with,
and their edges. So a change costs as much as the patch, however long the video is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from domain.memories import EdgeDraft, EventPatch, SegmentDraft


@dataclass(frozen=True)
class AbsorbedSegment:
    """Label and summary of a segment that was merged into another."""

    number: int
    label: str
    summary: str
    at_clip: int


@dataclass(frozen=True)
class OpenSegment:
    """An open segment; ``history`` are the segments it absorbed, in order."""

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
    """An open edge, between segment numbers."""

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


@dataclass(frozen=True)
class OpenGraph:
    """Open segments by number, and open edges by key."""

    segments: Mapping[int, OpenSegment] = field(default_factory=dict)
    edges: Mapping[EdgeKey, OpenEdge] = field(default_factory=dict)

    def number_of(self, label: str) -> int | None:
        """Return the number of the segment with that label."""
        return next(
            (segment.number for segment in self.segments.values() if segment.label == label), None
        )


@dataclass(frozen=True)
class GraphChange:
    """What a patch changes in the graph.

    Attributes:
        segments: New or changed segments, by number.
        absorbed: Number of each absorbed segment -> number of its survivor.
        opened_edges: New or changed edges, by key.
        closed_edges: Keys of removed or changed edges.
    """

    segments: Mapping[int, OpenSegment] = field(default_factory=dict)
    absorbed: Mapping[int, int] = field(default_factory=dict)
    opened_edges: Mapping[EdgeKey, OpenEdge] = field(default_factory=dict)
    closed_edges: frozenset[EdgeKey] = frozenset()


def change_from_patch(
    graph: OpenGraph, patch: EventPatch, at_clip: int, next_number: int
) -> GraphChange:
    """Compute the change that a checked patch makes.

    Args:
        graph: The part of the open graph that the patch touches, or all of it.
        patch: A patch without fatal complaints.
        at_clip: The clip after which the change holds.
        next_number: The number of the next new segment.

    Returns:
        The change, subset absorption included.
    """
    segments, labels = _add_segments(graph, patch.segments, next_number)
    edges = dict(graph.edges)
    for draft in patch.edges:
        _apply_edge(edges, draft, labels)
    absorbed = _find_subsets(segments, {labels[draft.label] for draft in patch.segments})
    _absorb_subsets(segments, absorbed, at_clip)
    edges = _redirect_edges(edges, absorbed)
    return _change_between(graph, OpenGraph(segments, edges), absorbed)


def _add_segments(
    graph: OpenGraph, drafts: Sequence[SegmentDraft], next_number: int
) -> tuple[dict[int, OpenSegment], dict[str, int]]:
    segments = dict(graph.segments)
    labels = {segment.label: segment.number for segment in segments.values()}
    earlier_labels = dict(labels)
    for draft in drafts:
        clips = tuple(sorted(draft.clips))
        if draft.extends is None:
            segment = OpenSegment(next_number, 0, draft.label, draft.summary, clips)
            next_number += 1
        else:
            extended = segments[earlier_labels[draft.extends]]
            segment = replace(extended, label=draft.label, summary=draft.summary, clips=clips)
        segments[segment.number] = segment
        labels[draft.label] = segment.number
    return segments, labels


def _apply_edge(
    edges: dict[EdgeKey, OpenEdge], draft: EdgeDraft, labels: Mapping[str, int]
) -> None:
    key = (labels[draft.source], labels[draft.target], str(draft.relation))
    if draft.removed:
        edges.pop(key, None)
        return
    edges[key] = OpenEdge(
        *key,
        explicit=draft.explicit,
        confidence=draft.confidence,
        rationale=draft.rationale.strip(),
        evidence=tuple(sorted(set(draft.evidence))),
    )


def _find_subsets(segments: Mapping[int, OpenSegment], touched: set[int]) -> dict[int, int]:
    """Map each segment whose clips are all in another to the largest such; of equals the later."""
    absorbed = {}
    for segment in segments.values():
        supersets = [
            other
            for other in segments.values()
            if set(segment.clips) <= set(other.clips)
            and (len(segment.clips), -segment.number) < (len(other.clips), -other.number)
            and touched & {segment.number, other.number}
        ]
        if supersets:
            best = min(supersets, key=lambda other: (-len(other.clips), other.number))
            absorbed[segment.number] = best.number
    return {
        absorbed_number: _final_survivor(survivor, absorbed)
        for absorbed_number, survivor in sorted(absorbed.items())
    }


def _final_survivor(number: int, absorbed: Mapping[int, int]) -> int:
    while number in absorbed:
        number = absorbed[number]
    return number


def _absorb_subsets(
    segments: dict[int, OpenSegment], absorbed: Mapping[int, int], at_clip: int
) -> None:
    for number, survivor in absorbed.items():
        removed, remaining = segments.pop(number), segments[survivor]
        record = AbsorbedSegment(removed.number, removed.label, removed.summary, at_clip)
        segments[survivor] = replace(
            remaining, history=(*remaining.history, *removed.history, record)
        )


def _redirect_edges(
    edges: Mapping[EdgeKey, OpenEdge], absorbed: Mapping[int, int]
) -> dict[EdgeKey, OpenEdge]:
    """Redirect edges of absorbed segments to the survivor; drop duplicates and self edges."""
    redirected: dict[EdgeKey, OpenEdge] = {}
    of_survivors = [edge for edge in edges.values() if not absorbed.keys() & set(edge.key[:2])]
    others = [edge for edge in edges.values() if absorbed.keys() & set(edge.key[:2])]
    for edge in [*of_survivors, *others]:
        source = absorbed.get(edge.source, edge.source)
        target = absorbed.get(edge.target, edge.target)
        if source != target:
            new_edge = replace(edge, source=source, target=target)
            redirected.setdefault(new_edge.key, new_edge)
    return redirected


def _change_between(
    before: OpenGraph, after: OpenGraph, absorbed: Mapping[int, int]
) -> GraphChange:
    segments = {
        number: replace(segment, revision=before.segments[number].revision + 1)
        if number in before.segments
        else segment
        for number, segment in after.segments.items()
        if before.segments.get(number) != segment
    }
    unchanged = {key for key, edge in after.edges.items() if before.edges.get(key) == edge}
    return GraphChange(
        segments=segments,
        absorbed=dict(absorbed),
        opened_edges={key: edge for key, edge in after.edges.items() if key not in unchanged},
        closed_edges=frozenset(before.edges.keys() - unchanged),
    )


def apply_change(graph: OpenGraph, change: GraphChange) -> OpenGraph:
    """Return the open graph after a change."""
    segments = {n: segment for n, segment in graph.segments.items() if n not in change.absorbed}
    edges = {key: edge for key, edge in graph.edges.items() if key not in change.closed_edges}
    return OpenGraph(segments | dict(change.segments), edges | dict(change.opened_edges))
