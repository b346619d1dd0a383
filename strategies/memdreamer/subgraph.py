"""The graph of a macro event: what it has, and whether it is sound; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from domain.built import EntityKey
from domain.time import TimeSpan
from strategies.memdreamer.levels import (
    ENTITY_KINDS,
    EVENT,
    GRAPH,
    MENTIONED,
    TEXT,
    VERTEX_KINDS,
    is_allowed,
)


@dataclass(frozen=True)
class GraphNode:
    """A micro-event or a text on screen; ``label`` is the type of an event."""

    level: str
    number: int
    label: str
    text: str
    span: TimeSpan
    clip: int

    @property
    def key(self) -> EntityKey:
        """The vertex that stands for it."""
        return EntityKey(VERTEX_KINDS[self.level], str(self.number))


@dataclass(frozen=True)
class GraphEdge:
    """An edge with when it holds, and the clips that it rests on."""

    subject: EntityKey
    label: str
    object: EntityKey
    span: TimeSpan
    clips: tuple[int, ...]

    @property
    def text(self) -> str:
        """The edge in words."""
        return f"{self.subject.name} {self.label} {self.object.name}"


@dataclass
class Subgraph:
    """The graph of a macro event, in order of time; entities with their attributes."""

    nodes: list[GraphNode] = field(default_factory=list)
    entities: dict[EntityKey, dict[str, Any]] = field(default_factory=dict)
    edges: list[GraphEdge] = field(default_factory=list)

    def of_level(self, level: str) -> list[GraphNode]:
        """Return the micro-events, or the texts."""
        return [node for node in self.nodes if node.level == level]


@dataclass
class Numbers:
    """The numbers of the next micro-event and of the next text; they run over the video."""

    next: dict[str, int] = field(default_factory=lambda: {EVENT: 0, TEXT: 0})

    def take(self, level: str) -> int:
        """Return the next number of a level."""
        number = self.next[level]
        self.next[level] = number + 1
        return number


@dataclass(frozen=True)
class Dropped:
    """What of a graph is not sound, in words."""

    what: tuple[str, ...]


def sound_part(graph: Subgraph, span: TimeSpan) -> tuple[Subgraph, Dropped]:
    """Return what of a graph is sound, and what is not.

    Spans are cut to that of the macro event, and what lies outside of it is dropped; so are
    entities of no kind, and edges whose ends are not there or whose label is not for them.

    Args:
        span: of the macro event.
    """
    wrong: list[str] = []
    nodes = []
    for node in graph.nodes:
        within = _within(node.span, span)
        if within is None:
            wrong.append(f"{node.level} {node.text!r} at {node.span} is outside of {span}")
        else:
            nodes.append(replace(node, span=within))
    entities = {key: value for key, value in graph.entities.items() if _is_entity(key)}
    wrong += [f"{key.name!r} is of no kind: {key.type}" for key in graph.entities.keys() - entities]
    known = {*entities, *(node.key for node in nodes)}
    edges = []
    for edge in _joined(graph.edges):
        complaint = _complaint(edge, known)
        within = _within(edge.span, span)
        if complaint or within is None:
            wrong.append(complaint or f"{edge.text!r} is outside of {span}")
        else:
            edges.append(edge if within is edge.span else replace(edge, span=within))
    return Subgraph(nodes, entities, edges), Dropped(tuple(wrong))


def _is_entity(key: EntityKey) -> bool:
    return key.type in ENTITY_KINDS and bool(key.name.strip())


def _within(inner: TimeSpan, outer: TimeSpan) -> TimeSpan | None:
    """Return the part of a span in another; None if it is outside."""
    if outer.contains(inner) and inner.start_ms < outer.end_ms:
        return inner
    start, end = max(inner.start_ms, outer.start_ms), min(inner.end_ms, outer.end_ms)
    return TimeSpan.of(start, end) if start <= end and start < outer.end_ms else None


def _complaint(edge: GraphEdge, known: set[EntityKey]) -> str:
    """Return what is wrong with an edge, or ""."""
    for end in (edge.subject, edge.object):
        if end not in known:
            return f"{edge.text!r}: there is no {end.type} {end.name!r}"
    if not is_allowed(GRAPH, edge.subject.type, edge.label, edge.object.type):
        kinds = f"{edge.subject.type} to {edge.object.type}"
        return f"{edge.text!r}: {edge.label} does not lead from {kinds}"
    if edge.subject == edge.object and edge.label != MENTIONED:
        return f"{edge.text!r} leads to itself"
    return ""


def _joined(edges: Iterable[GraphEdge]) -> list[GraphEdge]:
    """Join edges that say the same, with the span of them all."""
    found: dict[tuple[EntityKey, str, EntityKey], GraphEdge] = {}
    for edge in edges:
        key = (edge.subject, edge.label, edge.object)
        same = found.get(key)
        if same:
            clips = tuple(sorted({*same.clips, *edge.clips}))
            edge = replace(edge, clips=clips, span=same.span.union(edge.span))
        found[key] = edge
    return list(found.values())


def mentions(graph: Subgraph, span: TimeSpan, clip: int) -> Iterator[GraphEdge]:
    """Yield an edge to itself for each entity that has no other."""
    joined = {end for edge in graph.edges for end in (edge.subject, edge.object)}
    for key in graph.entities:
        if key not in joined:
            yield GraphEdge(key, MENTIONED, key, span, (clip,))


def degrees(graph: Subgraph) -> Mapping[EntityKey, int]:
    """Return in how many edges each entity is."""
    counts = dict.fromkeys(graph.entities, 0)
    for edge in graph.edges:
        for end in {edge.subject, edge.object} & counts.keys():
            counts[end] += edge.label != MENTIONED
    return counts
