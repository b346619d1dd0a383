"""How super events and the root grow above macro events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from agent.builder import Embed
from domain.built import (
    BuiltMemory,
    Change,
    ClosedNode,
    Entity,
    EntityKey,
    Node,
    Relation,
    RelationKey,
)
from domain.time import TimeSpan
from strategies.memdreamer.levels import BEFORE, MACRO, ROOT, SUPER, VERTEX_KINDS
from strategies.memdreamer.settings import HierarchySettings
from strategies.memdreamer.writer import (
    TOUCHED,
    HierarchyWriter,
    SuperEvent,
    SuperWindow,
    agglomerate,
    closest_pair,
    direction,
    run_sizes,
)

if TYPE_CHECKING:
    from domain.built import Vector


# Vectors of texts with the precision that they are stored in.


def halved(embed: Embed, texts: Sequence[str]) -> list[Vector]:
    """Return the unit vector of each text, (D,), in half precision as in the store.

    So a build that is resumed compares the same numbers as one that goes on.
    """
    found = embed(texts) if texts else ()
    return [np.asarray(row, dtype=np.float16).astype(np.float32) for row in found]


# Joins the changes of clips to that of a step, as if each had been stored by itself; pure.


def merged(parts: Iterable[Change]) -> Change:
    """Return the change that the changes of clips make together; they are in order of time."""
    nodes, entities, relations = list[Node](), list[Entity](), list[Relation]()
    closed, closed_nodes = list[Relation](), list[ClosedNode]()
    # Where those stand that are open, by what names them.
    open_nodes: dict[tuple[str, int], int] = {}
    open_relations: dict[RelationKey, list[int]] = {}

    def close_node(level: str, number: int, clip: int) -> bool:
        """Close a node of this step that is open, and check whether there is one."""
        place = open_nodes.pop((level, number), None)
        if place is not None:
            nodes[place] = replace(nodes[place], to_clip=clip)
        return place is not None

    for part in parts:
        for gone in part.closed_nodes:
            if not close_node(gone.level, gone.number, gone.clip):
                closed_nodes.append(gone)
        for node in part.nodes:
            close_node(node.level, node.number, node.from_clip)
            open_nodes[node.level, node.number] = len(nodes)
            nodes.append(node)
        entities += part.entities
        for ended in part.closed:
            places = open_relations.pop(ended.key, [])
            for place in places:
                relations[place] = replace(relations[place], to_clip=ended.to_clip)
            if not places:
                closed.append(ended)
        for relation in part.relations:
            open_relations.setdefault(relation.key, []).append(len(relations))
            relations.append(relation)
    return Change(nodes, entities, relations, closed, closed_nodes)


# The super events and the root above the macro events of a video, as macro events come in.

_INNER = re.compile(r"macro (\d+) ([A-Z_]+) macro (\d+): (.*)")
_OUTER = re.compile(r"([A-Z_]+) super (\d+): (.*)")


def super_text(one: SuperEvent) -> str:
    """Return the text of a super event as it is stored: its description, then its edges."""
    inner = [f"macro {a} {label} macro {b}: {why}" for (a, label, b), why in one.inner.items()]
    outer = [f"{label} super {b}: {why}" for (_, label, b), why in one.outer.items()]
    return "\n".join([one.text, *inner, *outer])


def stored_super(node: Node) -> SuperEvent:
    description, *lines = node.text.split("\n")
    inner = [match.groups() for line in lines if (match := _INNER.fullmatch(line))]
    outer = [match.groups() for line in lines if (match := _OUTER.fullmatch(line))]
    return SuperEvent(
        run=node.children,
        label=node.label,
        text=description,
        inner={(int(a), label, int(b)): why for a, label, b, why in inner},
        outer={(node.number, label, int(b)): why for label, b, why in outer},
    )


class Hierarchy:
    """The super events of a video. A super event has the number of its first macro event.

    Args:
        writer: writes super events and the root.
        built: what was built before.
    """

    def __init__(
        self, settings: HierarchySettings, writer: HierarchyWriter, title: str, built: BuiltMemory
    ) -> None:
        self._settings, self._writer, self._title = settings, writer, title
        self._macros = {n.number: n for n in built.nodes if n.level == MACRO}
        valid = [n for n in built.nodes if n.level == SUPER and n.to_clip is None]
        valid.sort(key=lambda node: node.number)
        self._supers = [stored_super(node) for node in valid]
        self._edges: dict[RelationKey, Relation] = {
            one.key: one
            for one in built.relations
            if one.level in (MACRO, SUPER) and one.to_clip is None
        }

    def grown(self, macros: Sequence[Node], clip: int, embed: Embed) -> Change:
        """Return what new macro events change above them.

        Args:
            macros: that a clip completed, in order; there is at least one.
            clip: after which the change holds.
        """
        self._macros |= {macro.number: macro for macro in macros}
        before = {one.run[0]: one for one in self._supers}
        # Drop edges to super events that are no more.
        supers = self._touched(macros)
        last = macros[-1]
        most = run_sizes(self._settings, len(self._macros), last.span.end_ms)[1]
        vectors = {number: direction(macro) for number, macro in self._macros.items()}
        while last.span.end_ms >= self._settings.long_video_ms:
            if len(supers) <= self._settings.long_supers[1]:
                break
            at = closest_pair([one.run for one in supers[:-TOUCHED]], vectors, most)
            if at is None:
                break
            run = supers[at].run + supers[at + 1].run
            joined = self._writer.joined(supers[at : at + 2], [self._macros[n] for n in run])
            supers[at : at + 2] = [joined]
        numbers = {one.run[0] for one in supers}
        self._supers = [
            replace(one, outer={key: why for key, why in one.outer.items() if key[2] in numbers})
            for one in supers
        ]
        changed = [one for one in self._supers if one != before.get(one.run[0])]
        gone = before.keys() - {one.run[0] for one in self._supers}
        nodes = [
            Node(
                SUPER,
                one.run[0],
                super_text(one),
                self._span(one),
                clip,
                label=one.label,
                children=one.run,
            )
            for one in changed
        ]
        seen_ms = macros[-1].span.end_ms
        span = TimeSpan.of(self._macros[0].span.start_ms, seen_ms)
        root = self._writer.root(self._title, self._supers)
        children = tuple(one.run[0] for one in self._supers)
        nodes.append(Node(ROOT, 0, root.text, span, clip, label=root.title, children=children))
        held, self._edges = self._edges, {one.key: one for one in self._stated(clip)}
        lasting = {
            key for key, one in self._edges.items() if key in held and held[key].span == one.span
        }
        texts = [f"{node.label}: {node.text.splitlines()[0]}" for node in nodes]
        embedded = halved(embed, texts)
        return Change(
            nodes=[
                replace(node, vector=vector) for node, vector in zip(nodes, embedded, strict=True)
            ],
            relations=[one for key, one in self._edges.items() if key not in lasting],
            closed=[replace(one, to_clip=clip) for key, one in held.items() if key not in lasting],
            closed_nodes=[ClosedNode(SUPER, number, clip) for number in sorted(gone)],
        )

    def _touched(self, macros: Sequence[Node]) -> list[SuperEvent]:
        kept, touched = self._supers[:-TOUCHED], self._supers[-TOUCHED:]
        numbers = [number for one in touched for number in one.run]
        numbers += [macro.number for macro in macros]
        sizes = run_sizes(self._settings, len(self._macros), macros[-1].span.end_ms)
        vectors = {number: direction(self._macros[number]) for number in numbers}
        window = SuperWindow(
            before=kept[-1] if kept else None,
            touched=touched,
            macros=[self._macros[number] for number in numbers],
            runs=agglomerate(numbers, vectors, sizes),
            sizes=sizes,
        )
        return [*kept, *self._writer.supers(window)]

    def _span(self, one: SuperEvent) -> TimeSpan:
        return self._macros[one.run[0]].span.union(self._macros[one.run[-1]].span)

    def _stated(self, clip: int) -> Iterator[Relation]:
        """Yield all edges that hold between super events, and between macro events of one."""
        numbered = {one.run[0]: one for one in self._supers}
        for one, after in pairwise(self._supers):
            yield self._super_edge(one, BEFORE, after, clip)
        for one in self._supers:
            for _, label, other in one.outer:
                yield self._super_edge(one, label, numbered[other], clip)
            for subject, label, target in one.inner:
                a, b = self._macros[subject], self._macros[target]
                yield _edge(MACRO, a.number, label, b.number, a.span.union(b.span), one, clip)

    def _super_edge(self, one: SuperEvent, label: str, other: SuperEvent, clip: int) -> Relation:
        span = self._span(one).union(self._span(other))
        return _edge(SUPER, one.run[0], label, other.run[0], span, one, clip)


def _edge(
    level: str, subject: int, label: str, target: int, span: TimeSpan, by: SuperEvent, clip: int
) -> Relation:
    kind = VERTEX_KINDS[level]
    return Relation(
        level=level,
        subject=EntityKey(kind, str(subject)),
        predicate=label,
        object=EntityKey(kind, str(target)),
        span=span,
        from_clip=clip,
        evidence=(clip,),
        node=(SUPER, by.run[0]),
    )
