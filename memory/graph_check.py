"""Checks a whole event graph for what checking single patches cannot find.

Each patch is checked before it is applied (``memory.patches``), but against what it touches only.
Here the graph is read as one: time may not run in a circle, nor two edges say opposite things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from domain.base import Frozen
from domain.memories import Edge, Relation, Segment


class GraphFault(StrEnum):
    """What may be wrong with an event graph, and with the stored images."""

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
    """An event graph with the clips it rests on, as of one moment.

    Attributes:
        stored: Clips that are in memory.
        due: Clips that a patch should have covered by now.
        pending: Clips of those that patches left for later, and said so.
        segments: The segments that hold.
        edges: The edges that hold.
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
"""Relations of which the opposite direction cannot hold too."""

OPPOSITE = (
    (Relation.BEFORE, Relation.CONCURRENT),
    (Relation.BEFORE, Relation.OVERLAP),
    (Relation.BEFORE, Relation.CONTAINS),
    (Relation.CAUSES, Relation.PREVENTS),
    (Relation.ENABLES, Relation.PREVENTS),
)
"""Relations that cannot both hold between two segments, in whichever direction."""


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
            yield _finding(GraphFault.ORPHAN, f"{segment.label!r} {reason}", _segment_ref(segment))


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
        names = " before ".join(repr(labels.get(one, f"s{one}")) for one in cycle)
        yield _finding(GraphFault.CYCLE, names, *(f"s{one}" for one in cycle[:-1]))
        arcs -= {(cycle[0], cycle[1])}


def _find_cycle(arcs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the nodes of a cycle, the first again at its end; empty if there is none."""
    predecessors: dict[int, set[int]] = {}
    for source, target in sorted(arcs):
        predecessors.setdefault(target, set()).add(source)
    try:
        TopologicalSorter(predecessors).prepare()
    except CycleError as error:
        return [int(one) for one in error.args[1]]
    return []


def _contradictions(graph: CheckedGraph) -> Iterator[GraphFinding]:
    segments = {segment.id: segment for segment in graph.segments}
    for edges in _edges_by_pair(graph.edges).values():
        for one, other in _pairs(edges):
            if are_opposite(one, other):
                text = f"{_describe_edge(one, segments)}, but {_describe_edge(other, segments)}"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(one))
        for edge in edges:
            if (
                edge.source in segments
                and edge.target in segments
                and _contradicts_time(edge, segments)
            ):
                text = f"{_describe_edge(edge, segments)}, but it begins after the other has ended"
                yield _finding(GraphFault.CONTRADICTION, text, *_segment_refs(edge))


def are_opposite(one: Edge, other: Edge) -> bool:
    """Tell whether two edges between the same two segments cannot both hold."""
    if one.relation is other.relation:
        return one.source != other.source and one.relation in ONE_WAY
    kinds = {one.relation, other.relation}
    return any(kinds == set(pair) for pair in OPPOSITE)


def _contradicts_time(edge: Edge, segments: Mapping[int, Segment]) -> bool:
    """Check whether the cause, or the earlier segment, begins only after the other ends.

    A cause that was stated in words may be told after its effect, as in a lecture.
    """
    first, then = segments[edge.source].span, segments[edge.target].span
    is_stated = edge.explicit and edge.relation is not Relation.BEFORE
    forward = (Relation.BEFORE, Relation.CAUSES, Relation.ENABLES)
    return not is_stated and edge.relation in forward and first.start_ms >= then.end_ms


def _edges_by_pair(edges: Sequence[Edge]) -> dict[tuple[int, int], list[Edge]]:
    found: dict[tuple[int, int], list[Edge]] = {}
    for edge in edges:
        low, high = sorted((edge.source, edge.target))
        found.setdefault((low, high), []).append(edge)
    return found


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


def _segment_ref(segment: Segment) -> str:
    return f"s{segment.id}"


def _clip_ranges(clips: Sequence[int]) -> str:
    """Format clips as ranges: 3, 5-8."""
    starts = [c for i, c in enumerate(clips) if i == 0 or clips[i - 1] != c - 1]
    ends = [a for a, b in pairwise(clips) if b != a + 1] + list(clips[-1:])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
