"""What strategies built that is about a moment of a video, as of a clip; each by its builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import case, func, or_, select
from sqlalchemy.orm import Session

from domain.built import BuiltFrame
from domain.memories import Scope
from domain.time import TimeSpan
from store.queries.conditions import valid_at
from store.queries.frames import COLUMNS
from store.queries.outline import OutlineNode
from store.tables.schema import (
    BuildRow,
    EntityRow,
    FrameRow,
    KeeperRow,
    NodeRevisionRow,
    NodeRow,
    RelationRow,
)


class RelationAt(NamedTuple):
    """A relation that holds at the moment; ``total`` counts all such of its builder."""

    builder: str
    id: int
    level: str
    subject: int
    predicate: str
    target: int
    span: TimeSpan
    total: int


class EntityAt(NamedTuple):
    """An entity by its row id."""

    id: int
    type: str
    name: str
    attributes: dict[str, Any]


def builders_of(session: Session, video: str) -> dict[str, tuple[str, ...]]:
    """Return who built or kept anything of a video, sorted by name, each with who wrote it."""
    built, kept = BuildRow, KeeperRow
    begun = (built.video_id == video, built.through_clip >= 0)
    builds = select(built.builder, built.writers).where(*begun)
    keepers = select(kept.builder).where(kept.video_id == video)
    writers: dict[str, tuple[str, ...]] = dict.fromkeys(session.scalars(keepers), ())
    writers |= {builder: tuple(names) for builder, names in session.execute(builds)}
    return dict(sorted(writers.items()))


def nodes_at(session: Session, scope: Scope, at_ms: int, most: int) -> list[OutlineNode]:
    """Return the nodes whose span holds a moment, shortest first, at most so many a builder."""
    n, r = NodeRow, NodeRevisionRow
    order = (r.end_ms - r.start_ms, n.level, n.number)
    place = func.row_number().over(partition_by=n.builder, order_by=order).label("place")
    columns = (n.id, n.builder, n.level, n.number, r.label, r.text, r.start_ms, r.end_ms, place)
    holds = (r.start_ms <= at_ms, r.end_ms > at_ms, valid_at(r, scope.last_clip))
    query = select(*columns).join(r, r.node_id == n.id).where(n.video_id == scope.video, *holds)
    ranked = query.subquery()
    first = select(ranked).where(ranked.c.place <= most).order_by(ranked.c.builder, ranked.c.place)
    return [
        OutlineNode._make((*node, TimeSpan.of(start, end)))
        for *node, start, end, _ in session.execute(first)
    ]


def relations_at(
    session: Session, scope: Scope, at_ms: int, clip: int, most: int
) -> list[RelationAt]:
    """Return the relations that hold at a moment, at most so many a builder.

    Those whose span holds the moment come first, then those stated last before it.

    Args:
        scope: the video, up to the clip that may be seen.
        clip: the clip of the moment; what was closed by then does not hold.
        most: relations of a builder at most.
    """
    r = RelationRow
    stated_then = case((r.end_ms > at_ms, 0), else_=1)
    order = (stated_then, at_ms - r.end_ms, r.id)
    place = func.row_number().over(partition_by=r.builder, order_by=order).label("place")
    total = func.count().over(partition_by=r.builder).label("total")
    ends = (r.subject_id, r.predicate, r.object_id, r.start_ms, r.end_ms)
    holds = (
        r.video_id == scope.video,
        r.from_clip <= scope.last_clip,
        r.start_ms <= at_ms,
        or_(r.to_clip.is_(None), r.to_clip > clip),
    )
    ranked = select(r.builder, r.id, r.level, *ends, total, place).where(*holds).subquery()
    first = select(ranked).where(ranked.c.place <= most).order_by(ranked.c.builder, ranked.c.place)
    return [
        RelationAt(
            row.builder,
            row.id,
            row.level,
            row.subject_id,
            row.predicate,
            row.object_id,
            TimeSpan.of(row.start_ms, row.end_ms),
            row.total,
        )
        for row in session.execute(first)
    ]


def entities_named(session: Session, ids: Sequence[int]) -> dict[int, EntityAt]:
    """Return entities by their row ids."""
    row = EntityRow
    query = select(row.id, row.type, row.name, row.attributes).where(row.id.in_(sorted(set(ids))))
    return {found.id: EntityAt(*found) for found in session.execute(query)}


def frames_near(
    session: Session, scope: Scope, at_ms: int, within_ms: int, most: int
) -> list[BuiltFrame]:
    """Return kept frames near a moment, in order of time; the nearest, at most so many a keeper."""
    row = FrameRow
    away = func.abs(row.time_ms - at_ms)
    place = func.row_number().over(partition_by=row.builder, order_by=(away, row.time_ms))
    near = (row.video_id == scope.video, row.clip <= scope.last_clip, away <= within_ms)
    ranked = select(*COLUMNS, place.label("place")).where(*near).subquery()
    first = select(ranked).where(ranked.c.place <= most)
    found = session.execute(first.order_by(ranked.c.builder, ranked.c.time_ms))
    return [BuiltFrame(*fields) for *fields, _ in found]
