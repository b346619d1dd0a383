"""Checks a whole event graph for faults that checking single patches cannot find; pure.

Each patch is checked before it is applied (``memory.patches``), but only against the segments it
touches. Here the whole graph is checked, for cycles in time and contradicting edges among others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from domain.base import Frozen
from domain.memories import Edge, Relation, Segment


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


ONE_WAY = (
    Relation.BEFORE,
    Relation.CONTAINS,
    Relation.CAUSES,
    Relation.ENABLES,
    Relation.REQUIRES,
)
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
    return [
        *_uncovered(graph),
        *_orphans(graph),
        *_dangling(graph),
        *_cycles(graph),
        *_contradictions(graph),
    ]


def _uncovered(graph: CheckedGraph) -> Iterator[GraphFinding]:
    covered = {clip for segment in graph.segments for clip in segment.clips}
    for clip in sorted((graph.due & graph.stored) - covered - graph.pending):
        yield _finding(
            GraphFault.UNCOVERED, f"clip {clip} is in no segment, nor pending", f"clip {clip}"
        )


def _orphans(graph: CheckedGraph) -> Iterator[GraphFinding]:
    for segment in graph.segments:
        missing = sorted(set(segment.clips) - graph.stored)
        if missing or not segment.clips:
            reason = (
                f"holds clips that are not in memory: {_clip_ranges(missing)}"
                if missing
                else "has no clips"
            )
            yield _finding(GraphFault.ORPHAN, f"{segment.label!r} {reason}", f"s{segment.id}")


def _dangling(graph: CheckedGraph) -> Iterator[GraphFinding]:
    segments = {segment.id: segment for segment in graph.segments}
    for edge in graph.edges:
        removed = [end for end in (edge.source, edge.target) if end not in segments]
        missing = sorted(set(edge.evidence) - graph.stored)
        if removed:
            text = f"{_describe_edge(edge, segments)} leads to a segment that is no more"
            yield _finding(GraphFault.DANGLING, text, *_segment_refs(edge))
        if missing:
            described, clips = _describe_edge(edge, segments), _clip_ranges(missing)
            text = f"{described} rests on clips that are not in memory: {clips}"
            yield _finding(GraphFault.DANGLING, text, *_segment_refs(edge))


def _cycles(graph: CheckedGraph) -> Iterator[GraphFinding]:
    """Circles of ``before``, each by its shortest telling; one edge of each is then left out."""
    labels = {segment.id: segment.label for segment in graph.segments}
    arcs = {(e.source, e.target) for e in graph.edges if e.relation is Relation.BEFORE}
    while cycle := _find_cycle(arcs):
        names = " before ".join(repr(labels.get(segment, f"s{segment}")) for segment in cycle)
        yield _finding(GraphFault.CYCLE, names, *(f"s{segment}" for segment in cycle[:-1]))
        arcs -= {(cycle[0], cycle[1])}


def _find_cycle(arcs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the nodes of a cycle, the first again at its end; empty if there is none."""
    predecessors: dict[int, set[int]] = {}
    for source, target in sorted(arcs):
        predecessors.setdefault(target, set()).add(source)
    try:
        TopologicalSorter(predecessors).prepare()
    except CycleError as error:
        return [int(node) for node in error.args[1]]
    return []


def _contradictions(graph: CheckedGraph) -> Iterator[GraphFinding]:
    segments = {segment.id: segment for segment in graph.segments}
    for edges in _edges_by_pair(graph.edges).values():
        for first, second in _pairs(edges):
            if are_opposite(first, second):
                text = f"{_describe_edge(first, segments)}, but {_describe_edge(second, segments)}"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(first))
        for edge in edges:
            if (
                edge.source in segments
                and edge.target in segments
                and _contradicts_time(edge, segments)
            ):
                text = f"{_describe_edge(edge, segments)}, but it begins after the other has ended"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(edge))


def are_opposite(first: Edge, second: Edge) -> bool:
    """Tell whether two edges between the same two segments cannot both hold."""
    if first.relation is second.relation:
        return first.source != second.source and first.relation in ONE_WAY
    kinds = {first.relation, second.relation}
    return any(kinds == set(pair) for pair in OPPOSITE)


def _contradicts_time(edge: Edge, segments: Mapping[int, Segment]) -> bool:
    """Check whether the cause, or the earlier segment, begins only after the other ends.

    A cause that speech states may be mentioned after its effect, as in a lecture.
    """
    source_span, target_span = segments[edge.source].span, segments[edge.target].span
    is_stated = edge.explicit and edge.relation is not Relation.BEFORE
    forward = (Relation.BEFORE, Relation.CAUSES, Relation.ENABLES)
    return not is_stated and edge.relation in forward and source_span.start_ms >= target_span.end_ms


def _edges_by_pair(edges: Sequence[Edge]) -> dict[tuple[int, int], list[Edge]]:
    by_pair: dict[tuple[int, int], list[Edge]] = {}
    for edge in edges:
        low, high = sorted((edge.source, edge.target))
        by_pair.setdefault((low, high), []).append(edge)
    return by_pair


def _pairs(edges: Sequence[Edge]) -> Iterator[tuple[Edge, Edge]]:
    for place, one in enumerate(edges):
        for other in edges[place + 1 :]:
            yield one, other


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
