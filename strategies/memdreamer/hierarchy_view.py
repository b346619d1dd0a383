"""MemDreamer's memory of a video: the hierarchy, its graphs, and what is known as of a clip."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from domain.built import BuiltMemory, StoredEntity, StoredNode, StoredRelation
from domain.time import TimeSpan
from retrieval.terms import terms
from retrieval.word_scores import WordIndex, WordScores
from strategies.memdreamer.levels import (
    EVENT,
    GRAPH,
    MACRO,
    MENTIONED,
    ROOT,
    SUPER,
    TEXT,
    VERTEX_KINDS,
)

ENTITY = "entity"
"""The level of vertices that are no nodes: people, things, places, groups."""
LEVELS = (ROOT, SUPER, MACRO, EVENT, TEXT)
"""The levels of nodes, coarse ones first."""
MOMENT_MS = 1_000
"""How long the moment is at which an entity is seen best."""
VIEWS = 2
"""Moments of a video of which the view is held."""
NEVER = np.iinfo(np.int64).max
"""The clip to which what was not closed holds."""

_LEVEL_OF = {kind: level for level, kind in VERTEX_KINDS.items()}


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
        """Return all that it says."""
        return _words(self.label, self.text)


@dataclass(frozen=True)
class VertexEdge:
    """An edge between vertices, by their refs; ``macro`` is what states one of a local graph."""

    subject: str
    label: str
    object: str
    macro: str | None = None

    def other(self, ref: str) -> str:
        """Return the end that is not this one."""
        return self.object if self.subject == ref else self.subject


class _Rows:
    """What was built of a video, with all that is the same as of every clip.

    Its N rows are the revisions of nodes, in order of level and time, then the M entities: people,
    things, places and groups.

    Args:
        built: as it is stored.

    Attributes:
        refs: of each row.
        rows_of: the rows of a ref: the revisions of a node, or an entity.
        begin, end: (N,), the clips from and to which it holds; of an entity only the first counts.
        first_of: by level, its first row, in order; the next level's first one ends it.
        node_ids: of nodes by level and number.
        stated: (S, 5), of what local graphs state of entities, by their row: the row, from and to
            which clip it holds, when it begins, and its number among such relations.
        number_of_row: (N,), the number of its ref, which revisions of a node share.
        edges: in order of time.
        edge_periods: (E, 4), from and to which clip each holds, and the numbers of its ends' refs.
        edges_at, edges_in: the numbers of the edges at a vertex, and of a macro event, by ref.
        inside, entities_in: the rows that are in a macro event, and of which it states something.
    """

    def __init__(self, built: BuiltMemory) -> None:
        by_level = defaultdict[str, list[StoredNode]](list)
        for node in built.nodes:
            by_level[node.level].append(node)
        self._macros = _BySpan(by_level[MACRO])
        self._nodes = [
            node
            for level in LEVELS
            for node in sorted(by_level[level], key=lambda node: (node.span.start_ms, node.number))
        ]
        self._entities = [one for one in built.entities if one.key.type not in _LEVEL_OF]
        self.node_ids = {(node.level, node.number): node.id for node in built.nodes}
        self.refs = [f"n{node.id}" for node in self._nodes]
        self.refs += [f"e{one.id}" for one in self._entities]
        self.rows_of = defaultdict[str, list[int]](list)
        for row, ref in enumerate(self.refs):
            self.rows_of[ref].append(row)
        lengths = [len(by_level[level]) for level in LEVELS]
        self.first_of = dict(zip((*LEVELS, ENTITY), accumulate(lengths, initial=0), strict=True))
        self._read_periods(built.relations)
        self._read_edges(built)
        self._read_insides()
        self.vertex_of_node = cache(self._vertex_of_node)
        """Return the vertex of a node's row."""

    def _read_periods(self, relations: Sequence[StoredRelation]) -> None:
        """Read from and to which clip rows hold, and what is stated of entities."""
        nodes, entities = self._nodes, self._entities
        begin = [*(one.from_clip for one in nodes), *(one.from_clip for one in entities)]
        end = [*map(_end, nodes), *(NEVER for _ in entities)]
        self.begin, self.end = np.array(begin, np.int64), np.array(end, np.int64)
        row_of = {one.id: len(nodes) + n for n, one in enumerate(entities)}
        local = [one for one in relations if one.level == GRAPH]
        self._spans = [one.span for one in local]
        self._macro_of = np.array([one.node or 0 for one in local], np.int64)
        table = [
            (row_of[end_id], one.from_clip, _end(one), one.span.start_ms, number)
            for number, one in enumerate(local)
            for end_id in {one.subject, one.object} & row_of.keys()
        ]
        stated = np.array(table, np.int64).reshape(len(table), 5)
        self.stated = stated[np.argsort(stated[:, 0], kind="stable")]
        self.entities_in = defaultdict[str, list[int]](list)
        for row, number in self.stated[:, [0, 4]].tolist():
            within = self.entities_in[f"n{self._macro_of[number]}"]
            if within[-1:] != [row]:
                within.append(row)

    def _read_edges(self, built: BuiltMemory) -> None:
        """Read the edges between vertices, and where each is."""
        refs = {one.id: ref for one in built.entities if (ref := self._ref_of(one))}
        number_of = {ref: number for number, ref in enumerate(self.rows_of)}
        self.number_of_row = np.array([number_of[ref] for ref in self.refs], np.int64)
        self.edges = list[VertexEdge]()
        self.edges_at = defaultdict[str, list[int]](list)
        self.edges_in = defaultdict[str, list[int]](list)
        periods = list[tuple[int, int, int, int]]()
        for one in sorted(built.relations, key=lambda one: (one.span.start_ms, one.id)):
            subject, target = refs.get(one.subject), refs.get(one.object)
            if one.predicate == MENTIONED or subject is None or target is None:
                continue
            macro = f"n{one.node}" if one.level == GRAPH else None
            for end in dict.fromkeys((subject, target)):
                self.edges_at[end].append(len(self.edges))
            if macro is not None:
                self.edges_in[macro].append(len(self.edges))
            self.edges.append(VertexEdge(subject, one.predicate, target, macro))
            periods.append((one.from_clip, _end(one), number_of[subject], number_of[target]))
        self.edge_periods = np.array(periods, np.int64).reshape(len(periods), 4)

    def _read_insides(self) -> None:
        """Read which micro-events and screen texts are in which macro event, in order of time."""
        self.inside = defaultdict[str, list[int]](list)
        within = range(self.first_of[EVENT], self.first_of[ENTITY])
        for row in sorted(within, key=lambda row: self._nodes[row].span.start_ms):
            for macro in self._macros_of(self._nodes[row]):
                self.inside[macro].append(row)

    def _ref_of(self, entity: StoredEntity) -> str | None:
        """Return the ref of a vertex: that of the node that it stands for, if it does."""
        level = _LEVEL_OF.get(entity.key.type)
        if level is None:
            return f"e{entity.id}"
        node = self.node_ids.get((level, int(entity.key.name)))
        return None if node is None else f"n{node}"

    def _macros_of(self, node: StoredNode) -> tuple[str, ...]:
        macro = self._macros.at(node.span.start_ms) if node.level in (EVENT, TEXT) else None
        return (f"n{macro.id}",) if macro else ()

    @cached_property
    def words(self) -> WordIndex:
        """Return the words of all rows."""
        said = [_words(one.label, one.text) for one in self._nodes]
        said += [_words(one.key.name, _description(one)) for one in self._entities]
        return WordIndex([*map(cache(terms), said)])

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows, (N, D); 0 where one has none."""
        known = [*(one.vector for one in self._nodes), *(one.vector for one in self._entities)]
        width = next((len(vector) for vector in known if vector is not None), 0)
        stacked = np.zeros((len(known), width), dtype=np.float32)
        for row, vector in enumerate(known):
            if vector is not None:
                stacked[row] = vector
        return stacked

    def children(self, row: int) -> Sequence[int]:
        """Return the numbers of the nodes that a revision of a node is made of."""
        return self._nodes[row].children

    def _vertex_of_node(self, row: int) -> Vertex:
        node = self._nodes[row]
        return Vertex(
            ref=f"n{node.id}",
            level=node.level,
            kind=node.level,
            number=node.number,
            label=node.label,
            text=node.text,
            span=node.span,
            vector=node.vector,
            macros=self._macros_of(node),
        )

    def vertex_of_entity(self, row: int, last_clip: int, in_view: Container[str]) -> Vertex:
        """Return the vertex of an entity's row after a clip; ``in_view``: what is known then."""
        entity = self._entities[row - self.first_of[ENTITY]]
        own = self.stated[slice(*np.searchsorted(self.stated[:, 0], [row, row + 1]))]
        now = own[(own[:, 1] <= last_clip) & (own[:, 2] > last_clip)]
        nodes = self._macro_of[now[:, 4]]
        macros = [f"n{nodes[at]}" for at in np.sort(np.unique(nodes, return_index=True)[1])]
        best = entity.attributes.get("best_ms")
        first = self._spans[int(now[int(np.argmin(now[:, 3])), 4])]
        return Vertex(
            ref=f"e{entity.id}",
            level=ENTITY,
            kind=entity.key.type,
            number=entity.id,
            label=entity.key.name,
            text=_description(entity),
            span=TimeSpan.of(best, best + MOMENT_MS) if isinstance(best, int) else first,
            vector=entity.vector,
            macros=tuple(ref for ref in macros if ref in in_view),
        )


def _end(one: StoredNode | StoredRelation) -> int:
    return NEVER if one.to_clip is None else one.to_clip


def _description(entity: StoredEntity) -> str:
    return str(entity.attributes.get("description") or "")


def _words(label: str, text: str) -> str:
    return f"{label}: {text}" if label and text else label or text


class HierarchyView:
    """What is known of a video after a clip; vertices and edges are made when they are opened.

    Args:
        rows: what was built of it.
        last_clip: the clip.

    Attributes:
        rows: (V,), the rows that hold, in order: a vertex each, by its place among them.
    """

    def __init__(self, rows: _Rows, last_clip: int) -> None:
        self._built, self._last_clip = rows, last_clip
        held = (rows.begin <= last_clip) & (rows.end > last_clip)
        stated, begin, end, *_ = rows.stated.T
        is_stated = np.zeros(len(held), np.bool_)
        is_stated[stated[(begin <= last_clip) & (end > last_clip)]] = True
        held[rows.first_of[ENTITY] :] &= is_stated[rows.first_of[ENTITY] :]
        self._held, self.rows = held, np.flatnonzero(held)
        self._entities: dict[str, Vertex] = {}

    def _row(self, ref: str) -> int | None:
        """Return the row of a ref that holds."""
        return next((row for row in self._built.rows_of.get(ref, ()) if self._held[row]), None)

    def __contains__(self, ref: object) -> bool:
        """Check whether there is a vertex of that ref."""
        return isinstance(ref, str) and self._row(ref) is not None

    def known(self, ref: str) -> Vertex | None:
        """Return the vertex of that ref, if it is known."""
        row = self._row(ref)
        if row is None:
            return None
        if row < self._built.first_of[ENTITY]:
            return self._built.vertex_of_node(row)
        if ref not in self._entities:
            self._entities[ref] = self._built.vertex_of_entity(row, self._last_clip, self)
        return self._entities[ref]

    def vertex(self, ref: str) -> Vertex:
        """Return the vertex of a ref that is known.

        Raises:
            KeyError: it is not.
        """
        found = self.known(ref)
        if found is None:
            raise KeyError(ref)
        return found

    def at(self, place: int) -> str:
        """Return the ref of the vertex at a place."""
        return self._built.refs[int(self.rows[place])]

    def place_of(self, ref: str) -> int:
        """Return the place of a vertex that is known.

        Raises:
            KeyError: it is not.
        """
        row = self._row(ref)
        if row is None:
            raise KeyError(ref)
        return int(np.searchsorted(self.rows, row))

    def places_of(self, level: str) -> NDArray[np.intp]:
        """Return the places of the vertices of a level, in order of time."""
        first_of, levels = self._built.first_of, [*LEVELS, ENTITY]
        after = dict(zip(levels, [*levels[1:], None], strict=True))[level]
        stop = len(self._built.refs) if after is None else first_of[after]
        first, last = np.searchsorted(self.rows, [first_of[level], stop])
        return np.arange(first, last)

    def of_level(self, level: str) -> list[Vertex]:
        """Return the vertices of a level, in order of time."""
        return [self.vertex(self.at(place)) for place in self.places_of(level).tolist()]

    def children(self, ref: str) -> list[Vertex]:
        """Return what the root or a super event is made of, in order of time."""
        row, below = self._row(ref), {ROOT: SUPER, SUPER: MACRO}.get(self.vertex(ref).level)
        if row is None or below is None:
            return []
        named = (self.named(below, number) for number in self._built.children(row))
        return [self.vertex(one) for one in named if one is not None]

    def parent(self, macro: str) -> str | None:
        """Return the super event of a macro event."""
        return self._parents.get(macro)

    def inside(self, macro: str) -> list[Vertex]:
        """Return the micro-events and screen text of a macro event, in order of time."""
        return self._of_rows(self._built.inside.get(macro, ()))

    def entities_of(self, macro: str) -> list[Vertex]:
        """Return the entities of a macro event, those with most edges in it first."""
        edges = self.edges_in(macro)
        counts = Counter(end for edge in edges for end in (edge.subject, edge.object))
        found = self._of_rows(self._built.entities_in.get(macro, ()))
        return sorted((o for o in found if macro in o.macros), key=lambda one: -counts[one.ref])

    def _of_rows(self, rows: Iterable[int]) -> list[Vertex]:
        return [self.vertex(self._built.refs[row]) for row in rows if self._held[row]]

    def edges_of(self, ref: str) -> list[VertexEdge]:
        """Return the edges from and to a vertex, in order of time."""
        return self._edges(self._built.edges_at.get(ref, ()))

    def edges_in(self, macro: str) -> list[VertexEdge]:
        """Return the edges of a macro event's graph, in order of time."""
        return self._edges(self._built.edges_in.get(macro, ()))

    def _edges(self, numbers: Iterable[int]) -> list[VertexEdge]:
        return [self._built.edges[n] for n in numbers if self._edge_holds[n]]

    @cached_property
    def _edge_holds(self) -> NDArray[np.bool_]:
        """Return which edges hold, between vertices that do: (E,)."""
        begin, end, subject, target = self._built.edge_periods.T
        numbers = self._built.number_of_row
        known = np.zeros(len(numbers), np.bool_)
        known[numbers[self.rows]] = True
        now = (begin <= self._last_clip) & (end > self._last_clip)
        both: NDArray[np.bool_] = now & known[subject] & known[target]
        return both

    def named(self, level: str, number: int) -> str | None:
        """Return the ref of the node of that level and number."""
        ref = f"n{self._built.node_ids.get((level, number))}"
        return ref if ref in self else None

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all vertices, (V, D); 0 where one has none."""
        return self._built.vectors[self.rows]

    @cached_property
    def words(self) -> WordScores:
        """Return how well vertices match words."""
        return self._built.words.within(self.rows)

    @cached_property
    def _parents(self) -> Mapping[str, str]:
        supers = self.of_level(SUPER)
        return {child.ref: one.ref for one in supers for child in self.children(one.ref)}


class _BySpan:
    """Nodes that lie one after the other, found by a time.

    Args:
        nodes: of one level.
    """

    def __init__(self, nodes: Sequence[StoredNode]) -> None:
        self._nodes = sorted(nodes, key=lambda node: node.span.start_ms)
        self._starts = [node.span.start_ms for node in self._nodes]

    def at(self, time_ms: int) -> StoredNode | None:
        """Return the node whose span has this time."""
        position = bisect_right(self._starts, time_ms) - 1
        if position < 0 or self._nodes[position].span.end_ms <= time_ms:
            return None
        return self._nodes[position]


class StoredHierarchy:
    """All that was built of a video.

    Args:
        built: as it is stored.
    """

    def __init__(self, built: BuiltMemory) -> None:
        self.encoder = built.encoder
        rows = _Rows(built)
        self.as_of = lru_cache(maxsize=VIEWS)(lambda clip: HierarchyView(rows, clip))
        """Return what is known after a clip."""
