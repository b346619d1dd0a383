"""Makes the graph of an episode of what a language model wrote, and says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from domain.built import EntityKey
from domain.memories import Memory
from domain.time import TimeSpan
from strategies.memdreamer.levels import (
    BEFORE,
    EVENT,
    EVENT_VERTEX,
    GRAPH_ENDS,
    MENTIONED,
    OVERLAP,
    PERFORMS,
    RECEIVES,
    TEXT,
    TEXT_VERTEX,
    is_allowed,
)
from strategies.memdreamer.levels import GRAPH as LEVEL
from strategies.memdreamer.subgraph import GraphEdge, GraphNode, Numbers, Subgraph
from strategies.memdreamer.writing_pages import line_text, shown_texts
from strategies.memdreamer.written import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_EDGES,
    MOST_ENTITIES,
    MOST_EVENTS,
    EpisodeEdge,
    EpisodeEvent,
    WrittenGraph,
    made_up,
    one_line,
    tags_in,
)

_PLACE = re.compile(r"(?P<kind>[ET])(?P<number>\d{1,4})")
_KINDS = {"E": EVENT_VERTEX, "T": TEXT_VERTEX}


class GraphOfReply:
    """Reads replies about one episode.

    Args:
        lines: as the model was shown them.
    """

    def __init__(self, span: TimeSpan, lines: Sequence[Memory]) -> None:
        self._span, self._lines = span, lines
        self._texts = shown_texts(lines)
        self._tags = tags_in(line_text(line) for line in lines)

    def complaints(self, reply: WrittenGraph) -> list[str]:
        """Return what the model is asked to put right."""
        kinds = {one_line(one.name): one.kind for one in reply.entities}
        wrong = made_up(kinds, self._tags)
        for number, event in enumerate(reply.events):
            if not self._has(event):
                wrong.append(f"E{number}: lines {event.first} to {event.last} are none")
            for name in filter(None, map(one_line, (event.subject, event.object))):
                if name not in kinds:
                    wrong.append(f"E{number}: {name!r} is not among the entities")
        for edge in reply.edges:
            wrong += self._edge_complaints(edge, dict(kinds), len(reply.events))
        return list(dict.fromkeys(wrong))

    def _edge_complaints(
        self, edge: EpisodeEdge, kinds: dict[str, str], events: int
    ) -> Iterator[str]:
        ends = []
        for end in map(one_line, (edge.subject, edge.object)):
            kind = kinds.get(end) or self._place_kind(end, events)
            ends.append(kind)
            if not kind:
                yield f"{end!r} is the end of an edge, but no entity, event or text"
        label = _label(edge)
        if label not in GRAPH_ENDS or label == MENTIONED:
            yield f"there is no label {edge.label!r}"
        elif all(ends) and not is_allowed(LEVEL, ends[0], label, ends[1]):
            yield f"{label} does not lead from {ends[0]} to {ends[1]}"

    def _place_kind(self, end: str, events: int) -> str:
        """Return whether ``E3`` or ``T0`` is an event or a text that there is; "" if neither."""
        match = _PLACE.fullmatch(end)
        if match is None:
            return ""
        most = events if match["kind"] == "E" else len(self._texts)
        return _KINDS[match["kind"]] if int(match["number"]) < most else ""

    def _has(self, event: EpisodeEvent) -> bool:
        return 0 <= event.first <= event.last < len(self._lines)

    def read(self, reply: WrittenGraph, numbers: Numbers, types: dict[str, str]) -> Subgraph:
        """Return the graph; an end of an edge that is not there stays, to be dropped later."""
        graph = Subgraph()
        names: dict[str, EntityKey] = {}
        for one in reply.entities[:MOST_ENTITIES]:
            name = one_line(one.name)[:LONGEST_NAME]
            if made_up([name, one.description], self._tags):
                continue
            names[name] = key = EntityKey(types.setdefault(name, one.kind), name)
            best = self._lines[min(max(one.best, 0), len(self._lines) - 1)].span.start_ms
            description = one_line(one.description)[:LONGEST_TEXT]
            graph.entities.setdefault(
                key, {"description": description, "best_ms": max(best, self._span.start_ms)}
            )
        places = self._add_texts(graph, numbers) | self._add_events(graph, reply, names, numbers)
        for edge in reply.edges[:MOST_EDGES]:
            ends = [
                names.get(end) or places.get(end) or EntityKey("", end)
                for end in map(one_line, (edge.subject, edge.object))
            ]
            if _label(edge) != MENTIONED:
                clips = self._clips(ends, graph)
                graph.edges.append(GraphEdge(ends[0], _label(edge), ends[1], self._span, clips))
        return graph

    def _clips(self, ends: Sequence[EntityKey], graph: Subgraph) -> tuple[int, ...]:
        """Return the clips that an edge rests on: those of its events and texts, else the first."""
        clips = {node.clip for node in graph.nodes if node.key in ends}
        return tuple(sorted(clips or {self._lines[0].clip}))

    def _add_texts(self, graph: Subgraph, numbers: Numbers) -> dict[str, EntityKey]:
        """Add the texts on screen as they were read; return their vertices by place."""
        places = {}
        for place, line in enumerate(self._texts):
            node = GraphNode(TEXT, numbers.take(TEXT), "", line.text, line.span, line.clip)
            graph.nodes.append(node)
            places[f"T{place}"] = node.key
        return places

    def _add_events(
        self,
        graph: Subgraph,
        reply: WrittenGraph,
        names: dict[str, EntityKey],
        numbers: Numbers,
    ) -> dict[str, EntityKey]:
        """Add micro-events with who does what; return their vertices by place."""
        places = {}
        made = []
        for place, event in enumerate(reply.events[:MOST_EVENTS]):
            if not self._has(event) or made_up([event.description], self._tags):
                continue
            first, last = self._lines[event.first], self._lines[event.last]
            node = GraphNode(
                EVENT,
                numbers.take(EVENT),
                one_line(event.type)[:LONGEST_NAME],
                one_line(event.description)[:LONGEST_TEXT],
                TimeSpan.of(first.span.start_ms, max(first.span.end_ms, last.span.end_ms)),
                first.clip,
            )
            graph.nodes.append(node)
            made.append(node)
            places[f"E{place}"] = node.key
            for name, label in ((event.subject, PERFORMS), (event.object, RECEIVES)):
                if end := names.get(one_line(name)):
                    edge = GraphEdge(end, label, node.key, node.span, (first.clip,))
                    graph.edges.append(edge)
        made.sort(key=lambda node: (node.span.start_ms, node.number))
        for one, other in pairwise(made):
            label = OVERLAP if one.span.overlap_ms(other.span) else BEFORE
            clips = tuple(sorted({one.clip, other.clip}))
            span = one.span.union(other.span)
            graph.edges.append(GraphEdge(one.key, label, other.key, span, clips))
        return places


def _label(edge: EpisodeEdge) -> str:
    return "_".join(edge.label.upper().split())
