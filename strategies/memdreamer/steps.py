"""Joins the changes of clips to that of a step, as if each had been stored by itself; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from domain.built import (
    Change,
    ClosedNode,
    ClosedRelation,
    EntityDraft,
    EntityKey,
    NodeDraft,
    RelationDraft,
)

RelationKey = tuple[str, EntityKey, str, EntityKey]


def merged(parts: Iterable[Change]) -> Change:
    """Return the change that the changes of clips make together; they are in order of time."""
    step = _Step()
    for part in parts:
        step.add(part)
    return Change(
        nodes=step.nodes,
        entities=step.entities,
        relations=step.relations,
        closed=step.closed,
        closed_nodes=step.closed_nodes,
    )


def relation_key(one: RelationDraft | ClosedRelation) -> RelationKey:
    """Return what names a relation that holds."""
    return one.level, one.subject, one.predicate, one.object


@dataclass
class _Step:
    nodes: list[NodeDraft] = field(default_factory=list)
    entities: list[EntityDraft] = field(default_factory=list)
    relations: list[RelationDraft] = field(default_factory=list)
    closed: list[ClosedRelation] = field(default_factory=list)
    closed_nodes: list[ClosedNode] = field(default_factory=list)
    _open_nodes: dict[tuple[str, int], int] = field(default_factory=dict)
    _open_relations: dict[RelationKey, list[int]] = field(default_factory=dict)

    def add(self, part: Change) -> None:
        for gone in part.closed_nodes:
            if not self._close_node(gone.level, gone.number, gone.clip):
                self.closed_nodes.append(gone)
        for node in part.nodes:
            self._close_node(node.level, node.number, node.clip)
            self._open_nodes[node.level, node.number] = len(self.nodes)
            self.nodes.append(node)
        self.entities += part.entities
        for ended in part.closed:
            places = self._open_relations.pop(relation_key(ended), [])
            for place in places:
                self.relations[place] = replace(self.relations[place], to_clip=ended.clip)
            if not places:
                self.closed.append(ended)
        for relation in part.relations:
            self._open_relations.setdefault(relation_key(relation), []).append(len(self.relations))
            self.relations.append(relation)

    def _close_node(self, level: str, number: int, clip: int) -> bool:
        """Close a node of this step that is open, and check whether there is one."""
        place = self._open_nodes.pop((level, number), None)
        if place is not None:
            self.nodes[place] = replace(self.nodes[place], to_clip=clip)
        return place is not None
