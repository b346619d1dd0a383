"""The open event graph and the change that a checked patch makes (section 3.3); pure.

Only the part of the graph that a patch touches is needed: segments it names or shares clips with,
and their edges. So a change costs as much as the patch, however long the video is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

from domain.base import Frozen
from domain.memories import AbsorbedSegment, Edge, EdgeKey, OpenEdge, OpenSegment, Relation, Segment
from memory.patches import WrittenPatch, WrittenSegment


@dataclass(frozen=True)
class OpenGraph:
    """Open segments by number, and open edges by key."""

    segments: Mapping[int, OpenSegment] = field(default_factory=dict)
    edges: Mapping[EdgeKey, OpenEdge] = field(default_factory=dict)

    def number_of(self, label: str) -> int | None:
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
    graph: OpenGraph, patch: WrittenPatch, at_clip: int, next_number: int
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
        key = (labels[draft.source], labels[draft.target], str(draft.relation))
        if draft.removed:
            edges.pop(key, None)
        else:
            edges[key] = OpenEdge(
                *key,
                explicit=draft.explicit,
                confidence=draft.confidence,
                rationale=draft.rationale.strip(),
                evidence=tuple(sorted(set(draft.evidence))),
            )
    absorbed = _find_subsets(segments, {labels[draft.label] for draft in patch.segments})
    for number, survivor in absorbed.items():
        removed, remaining = segments.pop(number), segments[survivor]
        record = AbsorbedSegment(removed.number, removed.label, removed.summary, at_clip)
        segments[survivor] = replace(
            remaining, history=(*remaining.history, *removed.history, record)
        )
    # Redirect edges of absorbed segments to the survivor; drop duplicates and self edges.
    redirected: dict[EdgeKey, OpenEdge] = {}
    of_survivors = [edge for edge in edges.values() if not absorbed.keys() & set(edge.key[:2])]
    others = [edge for edge in edges.values() if absorbed.keys() & set(edge.key[:2])]
    for edge in [*of_survivors, *others]:
        source = absorbed.get(edge.source, edge.source)
        target = absorbed.get(edge.target, edge.target)
        if source != target:
            new_edge = replace(edge, source=source, target=target)
            redirected.setdefault(new_edge.key, new_edge)
    edges = redirected
    after = OpenGraph(segments, edges)
    changed = {
        number: replace(segment, revision=graph.segments[number].revision + 1)
        if number in graph.segments
        else segment
        for number, segment in after.segments.items()
        if graph.segments.get(number) != segment
    }
    unchanged = {key for key, edge in after.edges.items() if graph.edges.get(key) == edge}
    return GraphChange(
        segments=changed,
        absorbed=dict(absorbed),
        opened_edges={key: edge for key, edge in after.edges.items() if key not in unchanged},
        closed_edges=frozenset(graph.edges.keys() - unchanged),
    )


def _add_segments(
    graph: OpenGraph, drafts: Sequence[WrittenSegment], next_number: int
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
    survivors = {}
    for number in sorted(absorbed):
        survivor = absorbed[number]
        while survivor in absorbed:
            survivor = absorbed[survivor]
        survivors[number] = survivor
    return survivors


def apply_change(graph: OpenGraph, change: GraphChange) -> OpenGraph:
    segments = {n: segment for n, segment in graph.segments.items() if n not in change.absorbed}
    edges = {key: edge for key, edge in graph.edges.items() if key not in change.closed_edges}
    return OpenGraph(segments | dict(change.segments), edges | dict(change.opened_edges))


# Checks a whole event graph for faults that checking single patches cannot find; pure.
#
# Each patch is checked before it is applied (``memory.patches``), but only against the segments it
# touches. Here the whole graph is checked, for cycles in time and contradicting edges among others.


class GraphFault(StrEnum):
    """Kinds of faults of an event graph, and of the stored images."""

    UNCOVERED = "uncovered"
    ORPHAN = "orphan"
    DANGLING = "dangling"
    CYCLE = "cycle"
    CONTRADICTION = "contradiction"
    MISSING = "missing"
    DAMAGED = "damaged"


class GraphFinding(Frozen):
    """One fault: ``refs`` names the segments (``s3``), clips (``clip 4``) or images it is about."""

    fault: GraphFault
    text: str
    refs: tuple[str, ...]


class CheckedGraph(Frozen):
    """An event graph with its clips, as of one clip.

    Attributes:
        stored: Clips that are in memory.
        due: Clips of windows whose patch is stored.
        pending: Those of them that the patches left uncovered, for a later window.
        segments: The open segments.
        edges: The open edges.
    """

    stored: frozenset[int]
    due: frozenset[int]
    pending: frozenset[int]
    segments: tuple[Segment, ...]
    edges: tuple[Edge, ...]


ONE_WAY = (Relation.BEFORE, Relation.CONTAINS, Relation.CAUSES, Relation.ENABLES, Relation.REQUIRES)
"""Asymmetric relations: an edge excludes the same relation in the other direction."""

OPPOSITE = (
    (Relation.BEFORE, Relation.CONCURRENT),
    (Relation.BEFORE, Relation.OVERLAP),
    (Relation.BEFORE, Relation.CONTAINS),
    (Relation.CAUSES, Relation.PREVENTS),
    (Relation.ENABLES, Relation.PREVENTS),
)
"""Pairs of relations that exclude each other between two segments, in either direction."""


def find_faults(graph: CheckedGraph) -> list[GraphFinding]:
    """Return every fault of a graph; empty where it is consistent."""
    found: list[GraphFinding] = []
    covered = {clip for segment in graph.segments for clip in segment.clips}
    for clip in sorted((graph.due & graph.stored) - covered - graph.pending):
        text = f"clip {clip} is in no segment, nor pending"
        found.append(_finding(GraphFault.UNCOVERED, text, f"clip {clip}"))
    for segment in graph.segments:
        missing = sorted(set(segment.clips) - graph.stored)
        if missing or not segment.clips:
            reason = (
                f"holds clips that are not in memory: {_clip_ranges(missing)}"
                if missing
                else "has no clips"
            )
            text = f"{segment.label!r} {reason}"
            found.append(_finding(GraphFault.ORPHAN, text, f"s{segment.id}"))
    segments = {segment.id: segment for segment in graph.segments}
    for edge in graph.edges:
        missing = sorted(set(edge.evidence) - graph.stored)
        if not {edge.source, edge.target} <= segments.keys():
            text = f"{_describe_edge(edge, segments)} leads to a segment that is no more"
            found.append(_finding(GraphFault.DANGLING, text, *_segment_refs(edge)))
        if missing:
            described, clips = _describe_edge(edge, segments), _clip_ranges(missing)
            text = f"{described} rests on clips that are not in memory: {clips}"
            found.append(_finding(GraphFault.DANGLING, text, *_segment_refs(edge)))
    return [*found, *_cycles(graph), *_contradictions(graph)]


def _cycles(graph: CheckedGraph) -> Iterator[GraphFinding]:
    """Circles of ``before``, each by its shortest telling; one edge of each is then left out."""
    labels = {segment.id: segment.label for segment in graph.segments}
    arcs = {(e.source, e.target) for e in graph.edges if e.relation is Relation.BEFORE}
    while True:
        predecessors: dict[int, set[int]] = {}
        for source, target in sorted(arcs):
            predecessors.setdefault(target, set()).add(source)
        try:
            TopologicalSorter(predecessors).prepare()
            return
        except CycleError as error:
            # The nodes of a cycle, the first again at its end.
            cycle = [int(node) for node in error.args[1]]
        names = " before ".join(repr(labels.get(segment, f"s{segment}")) for segment in cycle)
        yield _finding(GraphFault.CYCLE, names, *(f"s{segment}" for segment in cycle[:-1]))
        arcs -= {(cycle[0], cycle[1])}


def _contradictions(graph: CheckedGraph) -> Iterator[GraphFinding]:
    segments = {segment.id: segment for segment in graph.segments}
    forward = (Relation.BEFORE, Relation.CAUSES, Relation.ENABLES)
    by_pair: dict[tuple[int, int], list[Edge]] = {}
    for edge in graph.edges:
        low, high = sorted((edge.source, edge.target))
        by_pair.setdefault((low, high), []).append(edge)
    for edges in by_pair.values():
        for first, second in combinations(edges, 2):
            if are_opposite(first, second):
                text = f"{_describe_edge(first, segments)}, but {_describe_edge(second, segments)}"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(first))
        for edge in edges:
            source, target = segments.get(edge.source), segments.get(edge.target)
            # A cause that speech states may be mentioned after its effect, as in a lecture.
            if source is None or target is None or edge.relation not in forward:
                continue
            is_stated = edge.explicit and edge.relation is not Relation.BEFORE
            if not is_stated and source.span.start_ms >= target.span.end_ms:
                text = f"{_describe_edge(edge, segments)}, but it begins after the other has ended"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(edge))


def are_opposite(first: Edge, second: Edge) -> bool:
    """Tell whether two edges between the same two segments cannot both hold."""
    if first.relation is second.relation:
        return first.source != second.source and first.relation in ONE_WAY
    kinds = {first.relation, second.relation}
    return any(kinds == set(pair) for pair in OPPOSITE)


def _finding(fault: GraphFault, text: str, *refs: str) -> GraphFinding:
    return GraphFinding(fault=fault, text=text, refs=refs)


def _describe_edge(edge: Edge, segments: Mapping[int, Segment]) -> str:
    source, target = (
        repr(segments[end].label) if end in segments else f"s{end}"
        for end in (edge.source, edge.target)
    )
    return f"{source} {edge.relation} {target}"


def _segment_refs(edge: Edge) -> tuple[str, str]:
    return f"s{edge.source}", f"s{edge.target}"


def _clip_ranges(clips: Sequence[int]) -> str:
    """Format clips as ranges: 3, 5-8."""
    starts = [c for i, c in enumerate(clips) if i == 0 or clips[i - 1] != c - 1]
    ends = [a for a, b in pairwise(clips) if b != a + 1] + list(clips[-1:])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
