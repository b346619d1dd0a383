"""An outline to zoom into: one node of a strategy's memory, what it is made of, and its graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from agent.strategy import Strategy
from domain.base import Frozen
from domain.built import Entity, Node, OutlineLevel
from domain.memories import Scope
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import plain_line, shortened
from library.outlines import description_of, title_of
from people.characters import people_at
from store.database import Store
from store.queries.clips import memory_view
from store.queries.outline import (
    RelationAt,
    entities_named,
    entities_standing_for,
    levels_of_builders,
    node_around,
    node_named,
    nodes_numbered,
    nodes_within,
    relations_about,
    relations_among,
    relations_stated,
)
from strategies.registry import strategies_with_outline

_NUMBER = re.compile(r"[0-9]{1,18}")
"""The name of an entity that stands for a node: a number that the database takes."""
MAX_RELATIONS = 2_000
"""Relations of a node that are read."""
MAX_VERTICES, MAX_EDGES = 16, 30
"""Of a graph that is drawn: more could not be told apart."""
MAX_TITLE = 120
"""Characters of the title of a node whose text is its title."""
MAX_NAME = 40
"""Characters of a name in a graph."""


class ZoomNode(Frozen):
    """A node of an outline; ``noun`` is what a node of its level is called."""

    id: int
    noun: str
    title: str
    text: str
    span: TimeSpan


class ZoomedOutline(Frozen):
    """A node (None: all of the coarsest level), those that it is in, and some of its parts.

    ``path`` are the nodes that it is in, coarse ones first; ``total`` counts all parts, which are
    called ``noun``.
    """

    here: ZoomNode | None
    path: tuple[ZoomNode, ...]
    parts: tuple[ZoomNode, ...]
    total: int
    noun: str


class GraphVertex(Frozen):
    """An entity, or a node that stands in relations; ``person`` is the number of who it is."""

    id: int
    name: str
    kind: str
    person: int | None = None
    is_node: bool = False


class DrawnEdge(Frozen):
    """A relation between two vertices, by their ids; one to itself says that it is there."""

    subject: int
    label: str
    target: int


class NodeGraph(Frozen):
    """The vertices of a node's graph with most relations, and the relations among them.

    ``vertices_total`` and ``edges_total`` count all; ``people`` are all of its people.
    """

    vertices: tuple[GraphVertex, ...]
    edges: tuple[DrawnEdge, ...]
    vertices_total: int
    edges_total: int
    people: tuple[GraphVertex, ...]


class BuiltOutline(NamedTuple):
    """The outline that a strategy has built of a video: the levels that it has there."""

    strategy: Strategy
    levels: tuple[OutlineLevel, ...]

    @property
    def builder(self) -> str:
        """Return under which name its nodes are stored."""
        return self.strategy.memory


def outlines_of(store: Store, video: str) -> tuple[BuiltOutline, ...]:
    """Return the outlines that strategies have built of a video, by the name of the strategy."""
    with store.begin() as session:
        known = levels_of_builders(session, memory_view(session, [video]).scopes[0])
    found = (
        BuiltOutline(one, tuple(lv for lv in one.levels if (one.memory, lv.level) in known))
        for one in strategies_with_outline()
    )
    return tuple(one for one in found if one.levels)


def load_zoomed(
    store: Store, video: str, outline: BuiltOutline, node: int | None, offset: int, limit: int
) -> ZoomedOutline:
    """Return a node of the outline of a video as it is now, with ``limit`` of its parts.

    Args:
        node: the row id of the node; None, or not in this outline: the coarsest.
        offset: the first part that is returned.
    """
    levels = outline.levels
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        show = _NodeNames(session, scope)
        here = node_named(session, scope, node) if node is not None else None
        names = [level.level for level in levels]
        # An address may name a node of another strategy, or one that was deleted.
        if here is None or here.builder != outline.builder or here.level not in names:
            # The only node of the coarsest level, if there is only one.
            tops, count = nodes_within(session, scope, outline.builder, levels[0].level, None, 0, 1)
            here = tops[0] if count == 1 else None
        depth = -1 if here is None else names.index(here.level)
        path: list[Node] = []
        if here is not None:
            start_ms = here.span.start_ms
            for level in levels[: max(depth, 0)]:
                around = node_around(session, scope, here.builder, level.level, start_ms)
                path += [] if around is None else [around]
        below = levels[depth + 1] if depth + 1 < len(levels) else None
        parts: list[Node] = []
        total = 0
        if below is not None:
            span = here.span if here else None
            parts, total = nodes_within(
                session, scope, outline.builder, below.level, span, offset, limit
            )
    return ZoomedOutline(
        here=show.node(here, levels[depth]) if here else None,
        path=tuple(show.node(one, levels[names.index(one.level)]) for one in path),
        parts=tuple(show.node(one, below) for one in parts if below),
        total=total,
        noun=below.noun if below else "",
    )


class _NodeNames:
    """Shows nodes and entities of a video with the names that people have now."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self._people = people_at(session, scope.video, scope.last_clip)
        self._by_name = {
            (one.name or "").casefold(): one for one in self._people.characters if one.name
        }

    def node(self, node: Node, level: OutlineLevel) -> ZoomNode:
        return ZoomNode(
            id=node.id,
            noun=level.noun,
            title=shortened(self.words(title_of(node, level)), MAX_TITLE),
            text=self.words(description_of(node) if level.titled else node.text),
            span=node.span,
        )

    def words(self, text: str) -> str:
        """Return a text with names in place of tags, on one line."""
        return plain_line(tags_in_words(self._people.update_names(text)))

    def entity(self, entity: Entity) -> GraphVertex:
        name = entity.key.name
        # An entity is named by a tag, or by a name.
        person = self._people.character(name) or self._by_name.get(name.casefold())
        return GraphVertex(
            id=entity.id,
            name=shortened(self.words(name), MAX_NAME),
            kind=entity.key.type.lower(),
            person=person.number if person else None,
        )


def load_graph(store: Store, video: str, outline: BuiltOutline, node: int) -> NodeGraph | None:
    """Return the graph of a node: what it states, else how its parts, or itself, are related.

    None where there is no such node.
    """
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video]).scopes[0]
        found = node_named(session, scope, node)
        if found is None or found.builder != outline.builder:
            return None
        relations = _relations(session, scope, outline, found)
        ends = [end for one in relations for end in (one.subject, one.target)]
        entities = entities_named(session, ends)
        # The level and number of the node that each entity stands for, if it does.
        node_types = outline.strategy.node_types
        numbers = {
            entity.id: (node_types[entity.key.type], int(entity.key.name))
            for entity in entities.values()
            if entity.key.type in node_types and _NUMBER.fullmatch(entity.key.name)
        }
        nodes = nodes_numbered(session, scope, outline.builder, numbers.values())
        show = _NodeNames(session, scope)
    stands_for = {entity: nodes[key] for entity, key in numbers.items() if key in nodes}
    known = [
        one
        for one in relations
        if all(end not in numbers or end in stands_for for end in (one.subject, one.target))
    ]
    vertices = {
        end: _vertex(show, outline, entities[end], stands_for.get(end))
        for one in known
        for end in (one.subject, one.target)
    }
    # What of a graph can be drawn: what has most relations.
    between = list(
        dict.fromkeys(
            (one.subject, one.predicate, one.target) for one in known if one.subject != one.target
        )
    )
    degrees = Counter(end for subject, _, target in between for end in (subject, target))
    chosen: dict[int, None] = {}
    edges: list[DrawnEdge] = []
    # By the end with fewer: relations of one hub alone would say little of the others.
    by_lesser = sorted(between, key=lambda one: -min(degrees[one[0]], degrees[one[2]]))
    for subject, predicate, target in by_lesser:
        if len({*chosen, subject, target}) <= MAX_VERTICES and len(edges) < MAX_EDGES:
            chosen |= dict.fromkeys((subject, target))
            label = plain_line(predicate).replace("_", " ").lower()
            edges.append(DrawnEdge(subject=subject, label=label, target=target))
    if not edges:
        chosen = dict.fromkeys(list(vertices)[:MAX_VERTICES])
    return NodeGraph(
        vertices=tuple(vertices[end] for end in chosen),
        edges=tuple(edges),
        vertices_total=len(vertices),
        edges_total=len(between),
        people=tuple(_people(vertices)),
    )


def _relations(
    session: Session, scope: Scope, outline: BuiltOutline, node: Node
) -> list[RelationAt]:
    stated = relations_stated(session, scope, node.id, MAX_RELATIONS)
    if stated:
        return stated
    # Else how its parts are related: those of the nearest level that has relations.
    levels = [level.level for level in outline.levels]
    for level in levels[levels.index(node.level) + 1 :]:
        parts, _ = nodes_within(session, scope, node.builder, level, node.span, 0, MAX_RELATIONS)
        ends = _standing_for(session, scope, outline, parts)
        among = relations_among(session, scope, ends, MAX_RELATIONS)
        if among:
            return among
    # Else the relations that it has itself.
    own = _standing_for(session, scope, outline, [node])
    return relations_about(session, scope, own, MAX_RELATIONS)


def _standing_for(
    session: Session, scope: Scope, outline: BuiltOutline, nodes: Sequence[Node]
) -> list[int]:
    """Return the row ids of the entities that stand for some nodes of one level."""
    return [
        entity
        for kind, level in outline.strategy.node_types.items()
        if nodes and level == nodes[0].level
        for entity in entities_standing_for(
            session, scope, outline.builder, kind, [one.number for one in nodes]
        )
    ]


def _vertex(
    show: _NodeNames, outline: BuiltOutline, entity: Entity, node: Node | None
) -> GraphVertex:
    if node is None:
        return show.entity(entity)
    levels = {level.level: level for level in outline.levels}
    level = levels.get(node.level) or OutlineLevel(node.level, node.level, titled=False)
    name = shortened(show.words(title_of(node, level)), MAX_NAME)
    return GraphVertex(id=entity.id, name=name, kind=level.noun, is_node=True)


def _people(vertices: Mapping[int, GraphVertex]) -> Iterator[GraphVertex]:
    """Yield the vertices that are people, each person once."""
    seen: set[int] = set()
    for one in vertices.values():
        if one.person is not None and one.person not in seen:
            seen.add(one.person)
            yield one
