"""Whether a whole event graph holds together: what a patch by itself cannot show.

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
    """An event graph with what it stands on, as of one moment.

    Attributes:
        done: Clips that are in memory.
        woven: Clips that a patch should have covered by now.
        pending: Clips of those that patches left for later, and said so.
        segments: The segments that hold.
        edges: The edges that hold.
    """

    done: frozenset[int]
    woven: frozenset[int]
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


def findings(whole: CheckedGraph) -> list[GraphFinding]:
    """Everything that is wrong with a graph; an empty list where it is consistent."""
    return [
        *_uncovered(whole),
        *_orphans(whole),
        *_dangling(whole),
        *_cycles(whole),
        *_contradictions(whole),
    ]


def _uncovered(whole: CheckedGraph) -> Iterator[GraphFinding]:
    held = {clip for segment in whole.segments for clip in segment.clips}
    for clip in sorted((whole.woven & whole.done) - held - whole.pending):
        yield _finding(
            GraphFault.UNCOVERED, f"clip {clip} is in no segment, nor pending", f"clip {clip}"
        )


def _orphans(whole: CheckedGraph) -> Iterator[GraphFinding]:
    for segment in whole.segments:
        lost = sorted(set(segment.clips) - whole.done)
        if lost or not segment.clips:
            why = f"holds clips that are not in memory: {_list(lost)}" if lost else "has no clips"
            yield _finding(GraphFault.ORPHAN, f"{segment.label!r} {why}", _ref(segment))


def _dangling(whole: CheckedGraph) -> Iterator[GraphFinding]:
    known = {segment.id: segment for segment in whole.segments}
    for edge in whole.edges:
        gone = [end for end in (edge.source, edge.target) if end not in known]
        lost = sorted(set(edge.evidence) - whole.done)
        if gone:
            text = f"{_told(edge, known)} leads to a segment that is no more"
            yield _finding(GraphFault.DANGLING, text, *_ends(edge))
        if lost:
            text = f"{_told(edge, known)} rests on clips that are not in memory: {_list(lost)}"
            yield _finding(GraphFault.DANGLING, text, *_ends(edge))


def _cycles(whole: CheckedGraph) -> Iterator[GraphFinding]:
    """Circles of ``before``, each by its shortest telling; one edge of each is then left out."""
    labels = {segment.id: segment.label for segment in whole.segments}
    arcs = {(e.source, e.target) for e in whole.edges if e.relation is Relation.BEFORE}
    while circle := _circle(arcs):
        names = " before ".join(repr(labels.get(one, f"s{one}")) for one in circle)
        yield _finding(GraphFault.CYCLE, names, *(f"s{one}" for one in circle[:-1]))
        arcs -= {(circle[0], circle[1])}


def _circle(arcs: Iterable[tuple[int, int]]) -> list[int]:
    """Nodes along one circle, the first again at its end; empty where there is none."""
    followed: dict[int, set[int]] = {}
    for source, target in sorted(arcs):
        followed.setdefault(target, set()).add(source)
    try:
        TopologicalSorter(followed).prepare()
    except CycleError as error:
        return [int(one) for one in error.args[1]]
    return []


def _contradictions(whole: CheckedGraph) -> Iterator[GraphFinding]:
    known = {segment.id: segment for segment in whole.segments}
    for edges in _between(whole.edges).values():
        for one, other in _pairs(edges):
            if opposed(one, other):
                text = f"{_told(one, known)}, but {_told(other, known)}"
                yield _finding(GraphFault.CONTRADICTION, text, *_ends(one))
        for edge in edges:
            if edge.source in known and edge.target in known and _against_time(edge, known):
                text = f"{_told(edge, known)}, but it begins after the other has ended"
                yield _finding(GraphFault.CONTRADICTION, text, *_ends(edge))


def opposed(one: Edge, other: Edge) -> bool:
    """Whether two edges between the same two segments cannot both hold."""
    if one.relation is other.relation:
        return one.source != other.source and one.relation in ONE_WAY
    kinds = {one.relation, other.relation}
    return any(kinds == set(pair) for pair in OPPOSITE)


def _against_time(edge: Edge, known: Mapping[int, Segment]) -> bool:
    """Whether what comes first, or brings about, begins only after the other's end.

    A cause that was stated in words may be told after its effect, as in a lecture.
    """
    first, then = known[edge.source].span, known[edge.target].span
    told = edge.explicit and edge.relation is not Relation.BEFORE
    leads = (Relation.BEFORE, Relation.CAUSES, Relation.ENABLES)
    return not told and edge.relation in leads and first.start_ms >= then.end_ms


def _between(edges: Sequence[Edge]) -> dict[tuple[int, int], list[Edge]]:
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


def _told(edge: Edge, known: Mapping[int, Segment]) -> str:
    source, target = (
        repr(known[end].label) if end in known else f"s{end}" for end in (edge.source, edge.target)
    )
    return f"{source} {edge.relation} {target}"


def _ends(edge: Edge) -> tuple[str, str]:
    return f"s{edge.source}", f"s{edge.target}"


def _ref(segment: Segment) -> str:
    return f"s{segment.id}"


def _list(clips: Sequence[int]) -> str:
    """Clips as ranges: 3, 5-8."""
    starts = [c for i, c in enumerate(clips) if i == 0 or clips[i - 1] != c - 1]
    ends = [a for a, b in pairwise(clips) if b != a + 1] + list(clips[-1:])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
