"""MemDreamer's memory of a video as of a clip, and how its nodes, entities and edges are shown."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from domain.asking import Evidence
from domain.built import BuiltMemory, Entity, EntityKey, Node, Relation
from domain.time import TimeSpan
from retrieval.built_views import holds
from retrieval.chapters import BREAK
from retrieval.people_in_query import with_current_names
from retrieval.signals import WordScores
from retrieval.terms import terms
from strategies.asked import Pieces
from strategies.memdreamer import levels
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, TEXT
from strategies.memdreamer.settings import HierarchySettings

ENTITY = "entity"
"""The level of vertices that are no nodes: people, things, places, groups."""
LEVELS = (levels.ROOT, levels.SUPER, levels.MACRO, levels.EVENT, levels.TEXT)
"""The levels of nodes, coarse ones first."""
MOMENT_MS = 1_000
"""How long the moment is at which an entity is seen best."""
HALF_MINUTE_MS = 30_000
VIEWS = 2
"""Moments of a video of which the view is held."""

_LEVEL_OF = {kind: level for level, kind in levels.VERTEX_KINDS.items()}


@dataclass(frozen=True, eq=False)
class Vertex:
    """A node or an entity as of a clip.

    ``kind`` is its level, of an entity its type; ``label`` a title, the type of a micro-event or
    the name of an entity; ``macros`` the macro events that it is in, in order of time.
    """

    ref: str
    level: str
    kind: str
    number: int
    label: str
    text: str
    span: TimeSpan
    vector: NDArray[np.float32] | None
    macros: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.label}: {self.text}" if self.label and self.text else self.label or self.text


@dataclass(frozen=True)
class VertexEdge:
    """An edge between vertices, by their refs; ``macro`` is what states one of a local graph."""

    subject: str
    label: str
    object: str
    macro: str | None = None

    def other(self, ref: str) -> str:
        return self.object if self.subject == ref else self.subject


class _Rows:
    """What was built of a video, with what of it is the same as of every clip.

    Attributes:
        nodes: revisions in order of level and time, each with its vertex.
        entities: people, things, places and groups, each with the relations that it stands in.
        edges: relations in order of time, each with its edge.
    """

    def __init__(self, built: BuiltMemory) -> None:
        self._ids = {(node.level, node.number): node.id for node in built.nodes}
        macros = (node for node in built.nodes if node.level == levels.MACRO)
        self._macros = sorted(macros, key=lambda node: node.span.start_ms)
        by_level = defaultdict[str, list[Node]](list)
        for node in built.nodes:
            by_level[node.level].append(node)
        self.nodes = [
            (node, self._node_vertex(node))
            for level in LEVELS
            for node in sorted(by_level[level], key=lambda node: (node.span.start_ms, node.number))
        ]
        stated = defaultdict[EntityKey, list[Relation]](list)
        for one in built.relations:
            if one.level == levels.GRAPH:
                for end in {one.subject, one.object}:
                    stated[end].append(one)
        self.entities = [
            (one, stated[one.key]) for one in built.entities if one.key.type not in _LEVEL_OF
        ]
        refs = {one.key: ref for one in built.entities if (ref := self._ref_of(one))}
        self.edges = list[tuple[Relation, VertexEdge]]()
        for one in sorted(built.relations, key=lambda one: (one.span.start_ms, one.id)):
            subject, target = refs.get(one.subject), refs.get(one.object)
            if one.predicate != levels.MENTIONED and subject is not None and target is not None:
                stating = self.stating(one) if one.level == levels.GRAPH else None
                self.edges.append((one, VertexEdge(subject, one.predicate, target, stating)))
        self.terms = cache(terms)
        """Return the search terms of a text, each text's once."""

    def stating(self, relation: Relation) -> str | None:
        """Return the ref of the node that states a relation; None if no node does."""
        node = self._ids.get(relation.node) if relation.node else None
        return None if node is None else f"n{node}"

    def _node_vertex(self, node: Node) -> Vertex:
        macros: tuple[str, ...] = ()
        if node.level in (levels.EVENT, levels.TEXT):
            start = node.span.start_ms
            place = bisect_right(self._macros, start, key=lambda one: one.span.start_ms) - 1
            if place >= 0 and start < self._macros[place].span.end_ms:
                macros = (self._macros[place].ref,)
        return Vertex(
            ref=node.ref,
            level=node.level,
            kind=node.level,
            number=node.number,
            label=node.label,
            text=node.text,
            span=node.span,
            vector=node.vector,
            macros=macros,
        )

    def _ref_of(self, entity: Entity) -> str | None:
        """Return the ref of a vertex: that of the node that it stands for, if it does."""
        level = _LEVEL_OF.get(entity.key.type)
        if level is None:
            return f"e{entity.id}"
        node = self._ids.get((level, int(entity.key.name)))
        return None if node is None else f"n{node}"


class HierarchyView:
    """What is known of a video after a clip.

    Attributes:
        vertices: by ref: root, super events, macro events, micro-events, screen text, entities.
        edges: those between vertices in view, in order of time.
    """

    def __init__(self, rows: _Rows, last_clip: int) -> None:
        self._terms = rows.terms
        known = [(node, one) for node, one in rows.nodes if holds(node, last_clip)]
        self._by_number = {(node.level, node.number): node for node, _ in known}
        self.vertices = {one.ref: one for _, one in known}
        for entity, stated in rows.entities:
            now = [one for one in stated if holds(one, last_clip)]
            if now and entity.from_clip <= last_clip:
                macros = dict.fromkeys(rows.stating(one) for one in now)
                best = entity.attributes.get("best_ms")
                first = min((one.span for one in now), key=lambda span: span.start_ms)
                seen = TimeSpan.of(best, best + MOMENT_MS) if isinstance(best, int) else first
                self.vertices[f"e{entity.id}"] = Vertex(
                    ref=f"e{entity.id}",
                    level=ENTITY,
                    kind=entity.key.type,
                    number=entity.id,
                    label=entity.key.name,
                    text=str(entity.attributes.get("description") or ""),
                    span=seen,
                    vector=entity.vector,
                    macros=tuple(ref for ref in macros if ref in self.vertices),
                )
        self.edges = tuple(
            edge
            for relation, edge in rows.edges
            if holds(relation, last_clip)
            and edge.subject in self.vertices
            and edge.object in self.vertices
        )

    def named(self, level: str, number: int) -> str | None:
        node = self._by_number.get((level, number))
        return node.ref if node else None

    @cached_property
    def order(self) -> Mapping[str, int]:
        """Return the position of each vertex among all, by ref."""
        return {ref: position for position, ref in enumerate(self.vertices)}

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all vertices, (N, D); 0 where one has none."""
        known = [one.vector for one in self.vertices.values()]
        width = next((len(vector) for vector in known if vector is not None), 0)
        stacked = np.zeros((len(known), width), dtype=np.float32)
        for row, vector in enumerate(known):
            if vector is not None:
                stacked[row] = vector
        return stacked

    @cached_property
    def moments(self) -> Sequence[Sequence[Vertex]]:
        """Return the micro-events and screen text of each half minute of a macro event."""
        found = defaultdict[tuple[tuple[str, ...], int], list[Vertex]](list)
        for one in (*self.of_level[levels.EVENT], *self.of_level[levels.TEXT]):
            found[one.macros, one.span.start_ms // HALF_MINUTE_MS].append(one)
        return [*found.values()]

    @cached_property
    def pieces(self) -> Pieces:
        """Return the moments as what the options of a question are weighed by."""
        texts = [BREAK.join(dict.fromkeys(one.text for one in moment)) for moment in self.moments]
        rows = [self.order[one.ref] for moment in self.moments for one in moment]
        ends = np.cumsum([0, *map(len, self.moments)])
        of_moments = csr_array(
            (np.ones(len(rows), np.float32), rows, ends), (len(texts), len(self.vertices))
        )
        vectors = of_moments @ self.vectors
        return Pieces(
            [moment[0].ref for moment in self.moments],
            texts,
            [TimeSpan.of(one[0].span.start_ms, one[-1].span.end_ms) for one in self.moments],
            vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9),
            [WordScores([self._terms(text) for text in texts])],
        )

    @cached_property
    def words(self) -> WordScores:
        """Return how well vertices match words."""
        return WordScores([self._terms(one.words) for one in self.vertices.values()])

    @cached_property
    def of_level(self) -> Mapping[str, list[Vertex]]:
        """Return the vertices of each level, in order of time."""
        found = defaultdict[str, list[Vertex]](list)
        for one in self.vertices.values():
            found[one.level].append(one)
        return found

    @cached_property
    def children(self) -> Mapping[str, list[Vertex]]:
        """Return what the root and each super event is made of, in order of time."""
        found = defaultdict[str, list[Vertex]](list)
        for node in self._by_number.values():
            below = {levels.ROOT: levels.SUPER, levels.SUPER: levels.MACRO}.get(node.level, "")
            refs = (self.named(below, number) for number in node.children)
            found[node.ref] = [self.vertices[ref] for ref in refs if ref is not None]
        return found

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """Return the super event of each macro event that has one."""
        supers = self.of_level[levels.SUPER]
        return {child.ref: one.ref for one in supers for child in self.children[one.ref]}

    @cached_property
    def inside(self) -> Mapping[str, list[Vertex]]:
        """Return the micro-events and screen text of each macro event, in order of time."""
        found = defaultdict[str, list[Vertex]](list)
        within = [*self.of_level[levels.EVENT], *self.of_level[levels.TEXT]]
        for one in sorted(within, key=lambda one: one.span.start_ms):
            for macro in one.macros:
                found[macro].append(one)
        return found

    @cached_property
    def entities_of(self) -> Mapping[str, list[Vertex]]:
        """Return the entities of each macro event, those with most edges in it first."""
        counts = Counter(
            (edge.macro, end) for edge in self.edges for end in (edge.subject, edge.object)
        )
        found = defaultdict[str, list[Vertex]](list)
        for one in self.of_level[ENTITY]:
            for macro in one.macros:
                found[macro].append(one)
        for macro, within in found.items():
            within.sort(key=lambda one: -counts[macro, one.ref])
        return found

    @cached_property
    def edges_of(self) -> Mapping[str, list[VertexEdge]]:
        found = defaultdict[str, list[VertexEdge]](list)
        for edge in self.edges:
            for end in dict.fromkeys((edge.subject, edge.object)):
                found[end].append(edge)
        return found


class StoredHierarchy:
    """All that was built of a video."""

    def __init__(self, built: BuiltMemory) -> None:
        self.encoder = built.encoder
        rows = _Rows(built)
        self.as_of = lru_cache(maxsize=VIEWS)(lambda clip: HierarchyView(rows, clip))
        """Return what is known after a clip."""


# How they are shown: the first line says what it is, the others its refs.
#
# The policy reads refs back from the lines that code wrote: what a video or a model says is put
# on one line, which begins with other words.


KINDS = {
    ROOT: "whole video",
    SUPER: "super event",
    MACRO: "macro event",
    EVENT: "event",
    TEXT: "screen text",
}
"""What a node of a level is called."""
WITHIN, INSIDE, KEY = "In macro event", "Macro events", "Key entities"
"""What lines of refs begin with."""
SHORT, MOST_LISTED = 60, 8
"""Characters of the other end of an edge; refs of a line, at most."""

_WITHIN = re.compile(rf"^{WITHIN}s? (.*)$", re.M)
_INSIDE = re.compile(rf"^{INSIDE}: (.*)$", re.M)
_MACRO = re.compile(rf"{KINDS[MACRO]}\b")
_NODE = re.compile(r"\bn\d+\b")
_NOTE = re.compile(r"(?:(?:macro \d+ )?[A-Z_]+ (?:super|macro) \d+|Themes|Tone):")
_NUMBERED = re.compile(r"\b(super|macro) (\d+)\b")


class Showing:
    """Shows what is known of a video.

    Args:
        names: people's current names by tag.
        graph: whether entities and edges are shown.
        hierarchy: whether macro events are shown with their summaries.
    """

    def __init__(
        self, view: HierarchyView, names: Mapping[str, str], *, graph: bool, hierarchy: bool
    ) -> None:
        self._view, self._names = view, names
        self._graph, self._hierarchy = graph, hierarchy

    def plain(self, vertex: Vertex) -> str:
        """Return what a vertex says, without its refs."""
        _, _, said = self._head(vertex).partition(": ")
        return said

    def short(self, vertex: Vertex) -> str:
        """Return the first line of a vertex and its macro events, as a list of them shows it."""
        return "\n".join([self._head(vertex), *self._within(vertex)])

    def brief(self, vertex: Vertex) -> str:
        """Return a super event with the refs of its macro events, or a macro event."""
        return "\n".join([self._head(vertex), *self._parts(vertex)])

    def whole(self, vertex: Vertex) -> str:
        """Return a vertex with its place in the hierarchy and all edges, each with its end."""
        edges = self._view.edges_of[vertex.ref]
        lines = [self._head(vertex), *self._parts(vertex), *self._within(vertex)]
        # The edges that have a reason, themes and tone, with refs for numbers.
        for line in _split(vertex.text)[1]:
            head, colon, reason = line.partition(":")
            head = _NUMBERED.sub(lambda at: self._view.named(at[1], int(at[2])) or at[0], head)
            lines.append(self._line(f"{head}{colon}{reason}"))
        # Edges by label and way, each with its other end.
        ends: dict[str, list[str]] = {}
        for edge in edges if self._graph else ():
            head = f"{edge.label} ->" if edge.subject == vertex.ref else f"{edge.label} <-"
            ends.setdefault(head, []).append(self._end(edge.other(vertex.ref)))
        lines += (
            f"{head} {_listed([*dict.fromkeys(others)], '; ')}" for head, others in ends.items()
        )
        return "\n".join(lines)

    def in_graph(self, vertex: Vertex, macro: str) -> str:
        """Return a vertex of a local graph with the edges that lead from it, by their refs."""
        ends: dict[str, list[str]] = {}
        for edge in self._view.edges_of[vertex.ref] if self._graph else ():
            if edge.subject == vertex.ref and edge.macro == macro:
                ends.setdefault(edge.label, []).append(edge.object)
        leading = "; ".join(f"{label} {', '.join(refs)}" for label, refs in ends.items())
        return "\n".join([self._head(vertex), *([leading] if ends else [])])

    def edge(self, edge: VertexEdge) -> str:
        return f"{self._end(edge.subject)} {edge.label} {self._end(edge.object)}"

    def _head(self, vertex: Vertex) -> str:
        prose, _ = _split(vertex.text)
        if vertex.level == MACRO and not self._hierarchy:
            prose = ""
        kind = KINDS.get(vertex.level, vertex.kind)
        named = ": ".join(self._line(part) for part in (vertex.label, prose) if part.strip())
        return f"{kind}: {named}" if named else kind

    def _parts(self, vertex: Vertex) -> Iterator[str]:
        children = self._view.children[vertex.ref] if vertex.level == SUPER else []
        if children and self._hierarchy:
            yield f"{INSIDE}: {', '.join(child.ref for child in children)}"
        if vertex.level == MACRO and self._graph:
            key = self._view.entities_of[vertex.ref][: HierarchySettings().key_entities]
            if key:
                yield f"{KEY}: {', '.join(self._end(one.ref) for one in key)}"

    def _within(self, vertex: Vertex) -> Iterator[str]:
        if vertex.macros:
            several = "s" if len(vertex.macros) > 1 else ""
            yield f"{WITHIN}{several} {_listed(vertex.macros)}"

    def _end(self, ref: str) -> str:
        vertex = self._view.vertices[ref]
        said = vertex.label if vertex.level in (ENTITY, MACRO, SUPER) else vertex.words
        return f'{ref} "{self._line(said)[:SHORT]}"'

    def _line(self, text: str) -> str:
        return " ".join(with_current_names(text, self._names).split())


def _split(text: str) -> tuple[str, list[str]]:
    """Split the text of a node into prose and the lines that code or a model added to it."""
    lines = text.splitlines()
    notes = [line for line in lines if _NOTE.match(line)]
    return " ".join(line for line in lines if not _NOTE.match(line)), notes


def _listed(parts: Sequence[str], between: str = ", ") -> str:
    """Join parts, at most so many that the line stays short."""
    more = len(parts) - MOST_LISTED
    said = between.join(parts[:MOST_LISTED])
    return f"{said}{between}and {more} more" if more > 0 else said


def macros_named(piece: Evidence) -> list[str]:
    """Return the refs of the macro events that a piece is, lies in or is made of."""
    own = [piece.ref] if _MACRO.match(piece.text) else []
    lines = [*_WITHIN.findall(piece.text), *_INSIDE.findall(piece.text)]
    return [*own, *(ref for line in lines for ref in _NODE.findall(line))]
