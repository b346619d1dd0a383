"""The levels of nodes that outlines are made of, and the relations of a node's graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from domain.memories import Scope
from domain.time import TimeSpan
from store.queries.conditions import is_any_of, is_any_text, valid_at
from store.tables.schema import EntityRow, NodeRevisionRow, NodeRow, RelationRow


class OutlineNode(NamedTuple):
    """A node as of a clip."""

    id: int
    builder: str
    level: str
    number: int
    label: str
    text: str
    span: TimeSpan


class GraphRelation(NamedTuple):
    """A relation between two entities, by their row ids."""

    id: int
    subject: int
    predicate: str
    target: int


def levels_of_builders(session: Session, scope: Scope) -> set[tuple[str, str]]:
    """Return the levels of nodes that there are of a video, each with who built it."""
    row = NodeRow
    query = select(row.builder, row.level).where(row.video_id == scope.video).distinct()
    return {(builder, level) for builder, level in session.execute(query)}


def nodes_of_levels(
    session: Session, scope: Scope, builder: str, levels: Collection[str]
) -> list[OutlineNode]:
    """Return all nodes of some levels, in order of time."""
    query = _nodes(scope, builder).where(is_any_text(NodeRow.level, levels))
    return _read(session, query.order_by(*_IN_TIME))


def nodes_within(
    session: Session,
    scope: Scope,
    builder: str,
    level: str,
    span: TimeSpan | None,
    offset: int,
    limit: int,
) -> tuple[list[OutlineNode], int]:
    """Return ``limit`` nodes of a level that begin in a span, by time, and how many there are.

    ``span`` None: all nodes of the level.
    """
    query = _nodes(scope, builder).where(NodeRow.level == level)
    if span is not None:
        start = NodeRevisionRow.start_ms
        query = query.where(start >= span.start_ms, start < span.end_ms)
    total = session.scalar(query.with_only_columns(func.count(), maintain_column_froms=True)) or 0
    return _read(session, query.order_by(*_IN_TIME).offset(offset).limit(limit)), total


def node_named(session: Session, scope: Scope, node: int) -> OutlineNode | None:
    """Return the node of that row id, if it is of the video and known as of the clip."""
    query = _nodes(scope, None).where(NodeRow.id == node)
    return next(iter(_read(session, query)), None)


def node_around(
    session: Session, scope: Scope, builder: str, level: str, at_ms: int
) -> OutlineNode | None:
    """Return the node of a level whose span holds a moment."""
    row = NodeRevisionRow
    query = _nodes(scope, builder).where(NodeRow.level == level, row.start_ms <= at_ms)
    query = query.order_by(row.start_ms.desc(), NodeRow.number.desc()).limit(1)
    found = next(iter(_read(session, query)), None)
    return found if found and at_ms < found.span.end_ms else None


def nodes_numbered(
    session: Session, scope: Scope, builder: str, numbers: Collection[tuple[str, int]]
) -> dict[tuple[str, int], OutlineNode]:
    """Return nodes by their level and number."""
    by_level: dict[str, list[int]] = {}
    for level, number in numbers:
        by_level.setdefault(level, []).append(number)
    wanted = [
        and_(NodeRow.level == level, is_any_of(NodeRow.number, some))
        for level, some in by_level.items()
    ]
    if not wanted:
        return {}
    found = _read(session, _nodes(scope, builder).where(or_(*wanted)))
    return {(one.level, one.number): one for one in found}


def relations_stated(session: Session, scope: Scope, node: int, limit: int) -> list[GraphRelation]:
    """Return the first relations that a node states, in order of time."""
    return _relations(session, scope, limit, RelationRow.node_id == node)


def relations_among(
    session: Session, scope: Scope, entities: Collection[int], limit: int
) -> list[GraphRelation]:
    """Return the first relations between these entities, in order of time."""
    ends = (is_any_of(RelationRow.subject_id, entities), is_any_of(RelationRow.object_id, entities))
    return _relations(session, scope, limit, *ends)


def relations_about(
    session: Session, scope: Scope, entities: Collection[int], limit: int
) -> list[GraphRelation]:
    """Return the first relations from or to these entities, in order of time."""
    subject = is_any_of(RelationRow.subject_id, entities)
    return _relations(
        session, scope, limit, or_(subject, is_any_of(RelationRow.object_id, entities))
    )


def entities_standing_for(
    session: Session, scope: Scope, builder: str, kind: str, numbers: Collection[int]
) -> list[int]:
    """Return the row ids of the entities of a type that are named by these numbers of nodes."""
    row = EntityRow
    of_builder = (row.video_id == scope.video, row.builder == builder, row.type == kind)
    named = is_any_text(row.name, map(str, numbers))
    return list(session.scalars(select(row.id).where(*of_builder, named)))


_IN_TIME: Sequence[Any] = (NodeRevisionRow.start_ms, NodeRow.number)


def _nodes(scope: Scope, builder: str | None) -> Select[*tuple[Any, ...]]:
    n, r = NodeRow, NodeRevisionRow
    columns = (n.id, n.builder, n.level, n.number, r.label, r.text, r.start_ms, r.end_ms)
    query = select(*columns).join(r, r.node_id == n.id)
    query = query.where(n.video_id == scope.video, valid_at(r, scope.last_clip))
    return query if builder is None else query.where(n.builder == builder)


def _read(session: Session, query: Select[*tuple[Any, ...]]) -> list[OutlineNode]:
    return [
        OutlineNode(node, builder, level, number, label, text, TimeSpan.of(start, end))
        for node, builder, level, number, label, text, start, end in session.execute(query)
    ]


def _relations(session: Session, scope: Scope, limit: int, *which: Any) -> list[GraphRelation]:
    row = RelationRow
    query = select(row.id, row.subject_id, row.predicate, row.object_id)
    holds = (row.video_id == scope.video, valid_at(row, scope.last_clip))
    query = query.where(*holds, *which).order_by(row.start_ms, row.id).limit(limit)
    return [GraphRelation(*fields) for fields in session.execute(query)]
