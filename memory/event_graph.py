"""The open event graph, and the change that a checked patch makes to it; pure.

Only the part of the graph that a patch touches is needed: segments it names or shares clips with,
and their edges. So a change costs as much as the patch, however long the video is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from domain.memories import EdgeDraft, EventPatch, SegmentDraft


@dataclass(frozen=True)
class Absorbed:
    """The words of a segment that was merged into another."""

    number: int
    label: str
    summary: str
    at_clip: int


@dataclass(frozen=True)
class Node:
    """An open segment. ``history``: those it absorbed, the first first."""

    number: int
    revision: int
    label: str
    summary: str
    clips: tuple[int, ...]
    history: tuple[Absorbed, ...] = ()


Ends = tuple[int, int, str]
"""Source number, target number, relation: what makes an edge that edge."""


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
    def ends(self) -> Ends:
        """What makes it this edge and no other."""
        return (self.source, self.target, self.relation)


@dataclass(frozen=True)
class OpenGraph:
    """Open segments by number, and open edges by their ends."""

    nodes: Mapping[int, Node] = field(default_factory=dict)
    links: Mapping[Ends, OpenEdge] = field(default_factory=dict)

    def numbered(self, label: str) -> int | None:
        """The number of the segment with that label."""
        return next((node.number for node in self.nodes.values() if node.label == label), None)


@dataclass(frozen=True)
class GraphChange:
    """What a patch does to the graph: ``after`` holds every touched segment and edge.

    Attributes:
        nodes: Segments that are new or read otherwise than before, by number.
        absorbed: Number of each segment that is no more, and of its survivor.
        opened: Edges that are new or changed.
        closed: Edges that are no more, or were changed.
    """

    nodes: Mapping[int, Node] = field(default_factory=dict)
    absorbed: Mapping[int, int] = field(default_factory=dict)
    opened: Mapping[Ends, OpenEdge] = field(default_factory=dict)
    closed: frozenset[Ends] = frozenset()


def weave(graph: OpenGraph, patch: EventPatch, at_clip: int, next_number: int) -> GraphChange:
    """The change that a checked patch makes.

    Args:
        graph: The part of the open graph that the patch touches, or all of it.
        patch: A patch without fatal complaints.
        at_clip: The clip after which the change holds.
        next_number: The number of the next new segment.

    Returns:
        The change, subset absorption included.
    """
    nodes, labels = _draw(graph, patch.segments, next_number)
    links = dict(graph.links)
    for draft in patch.edges:
        _link(links, draft, labels)
    absorbed = _subsets(nodes, {labels[draft.label] for draft in patch.segments})
    _absorb(nodes, absorbed, at_clip)
    links = _repoint(links, absorbed)
    return _difference(graph, OpenGraph(nodes, links), absorbed)


def _draw(
    graph: OpenGraph, drafts: Sequence[SegmentDraft], next_number: int
) -> tuple[dict[int, Node], dict[str, int]]:
    nodes = dict(graph.nodes)
    labels = {node.label: node.number for node in nodes.values()}
    before = dict(labels)
    for draft in drafts:
        clips = tuple(sorted(draft.clips))
        if draft.extends is None:
            node = Node(next_number, 0, draft.label, draft.summary, clips)
            next_number += 1
        else:
            old = nodes[before[draft.extends]]
            node = replace(old, label=draft.label, summary=draft.summary, clips=clips)
        nodes[node.number] = node
        labels[draft.label] = node.number
    return nodes, labels


def _link(links: dict[Ends, OpenEdge], draft: EdgeDraft, labels: Mapping[str, int]) -> None:
    ends = (labels[draft.source], labels[draft.target], str(draft.relation))
    if draft.removed:
        links.pop(ends, None)
        return
    links[ends] = OpenEdge(
        *ends,
        explicit=draft.explicit,
        confidence=draft.confidence,
        rationale=draft.rationale.strip(),
        evidence=tuple(sorted(set(draft.evidence))),
    )


def _subsets(nodes: Mapping[int, Node], touched: set[int]) -> dict[int, int]:
    """Each segment whose clips are a strict subset of another's, and its largest superset."""
    absorbed = {}
    for node in nodes.values():
        wider = [
            other
            for other in nodes.values()
            if set(node.clips) < set(other.clips) and touched & {node.number, other.number}
        ]
        if wider:
            best = min(wider, key=lambda other: (-len(other.clips), other.number))
            absorbed[node.number] = best.number
    return {loser: _end(winner, absorbed) for loser, winner in sorted(absorbed.items())}


def _end(number: int, absorbed: Mapping[int, int]) -> int:
    while number in absorbed:
        number = absorbed[number]
    return number


def _absorb(nodes: dict[int, Node], absorbed: Mapping[int, int], at_clip: int) -> None:
    for loser, winner in absorbed.items():
        gone, kept = nodes.pop(loser), nodes[winner]
        told = Absorbed(gone.number, gone.label, gone.summary, at_clip)
        nodes[winner] = replace(kept, history=(*kept.history, *gone.history, told))


def _repoint(links: Mapping[Ends, OpenEdge], absorbed: Mapping[int, int]) -> dict[Ends, OpenEdge]:
    """Edges of absorbed segments go to the survivor, unless it has that edge or both ends meet."""
    moved: dict[Ends, OpenEdge] = {}
    of_survivors = [link for link in links.values() if not absorbed.keys() & set(link.ends[:2])]
    others = [link for link in links.values() if absorbed.keys() & set(link.ends[:2])]
    for link in [*of_survivors, *others]:
        source = absorbed.get(link.source, link.source)
        target = absorbed.get(link.target, link.target)
        if source != target:
            turned = replace(link, source=source, target=target)
            moved.setdefault(turned.ends, turned)
    return moved


def _difference(before: OpenGraph, after: OpenGraph, absorbed: Mapping[int, int]) -> GraphChange:
    nodes = {
        number: replace(node, revision=before.nodes[number].revision + 1)
        if number in before.nodes
        else node
        for number, node in after.nodes.items()
        if before.nodes.get(number) != node
    }
    kept = {ends for ends, link in after.links.items() if before.links.get(ends) == link}
    return GraphChange(
        nodes=nodes,
        absorbed=dict(absorbed),
        opened={ends: link for ends, link in after.links.items() if ends not in kept},
        closed=frozenset(before.links.keys() - kept),
    )


def applied(graph: OpenGraph, change: GraphChange) -> OpenGraph:
    """The open graph after a change."""
    nodes = {n: node for n, node in graph.nodes.items() if n not in change.absorbed}
    links = {ends: link for ends, link in graph.links.items() if ends not in change.closed}
    return OpenGraph(nodes | dict(change.nodes), links | dict(change.opened))
