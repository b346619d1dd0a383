"""The nodes that outlines are made of, a node's graph, what was built of a moment, and recaps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, delete, func, literal, or_, select, text
from sqlalchemy.orm import Session

from domain.built import BuiltFrame, Entity, EntityKey, Node, Period, Recap
from domain.media import ClipState
from domain.memories import Edge, Scope, Segment
from domain.time import TimeSpan
from store.queries.conditions import is_any_of, is_any_text, valid_at
from store.queries.events import EDGES, clip_spans
from store.queries.keyframes import FRAMES
from store.tables.schema import (
    BuildRow,
    ClipRow,
    EdgeRow,
    EntityRow,
    FrameRow,
    KeeperRow,
    NodeRevisionRow,
    NodeRow,
    RelationRow,
    SegmentRevisionRow,
    SegmentRow,
    StreamRow,
    VideoRow,
)


class RelationAt(NamedTuple):
    """A relation between two entities, by their row ids.

    ``total``: how many relations of its builder hold at the moment that was asked for.
    """

    id: int
    builder: str
    level: str
    subject: int
    predicate: str
    target: int
    span: TimeSpan
    total: int = 0


def levels_of_builders(session: Session, scope: Scope) -> set[tuple[str, str]]:
    """Return the levels of nodes that there are of a video, each with who built it."""
    row = NodeRow
    query = select(row.builder, row.level).where(row.video_id == scope.video).distinct()
    return {(builder, level) for builder, level in session.execute(query)}


def nodes_of_levels(
    session: Session, scope: Scope, builder: str, levels: Collection[str]
) -> list[Node]:
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
) -> tuple[list[Node], int]:
    """Return ``limit`` nodes of a level that begin in a span, by time, and how many there are.

    ``span`` None: all nodes of the level.
    """
    query = _nodes(scope, builder).where(NodeRow.level == level)
    if span is not None:
        start = NodeRevisionRow.start_ms
        query = query.where(start >= span.start_ms, start < span.end_ms)
    total = session.scalar(query.with_only_columns(func.count(), maintain_column_froms=True)) or 0
    return _read(session, query.order_by(*_IN_TIME).offset(offset).limit(limit)), total


def node_named(session: Session, scope: Scope, node: int) -> Node | None:
    """Return the node of that row id, if it is of the video and known as of the clip."""
    query = _nodes(scope, None).where(NodeRow.id == node)
    return next(iter(_read(session, query)), None)


def node_around(
    session: Session, scope: Scope, builder: str, level: str, at_ms: int
) -> Node | None:
    """Return the node of a level whose span holds a moment."""
    row = NodeRevisionRow
    query = _nodes(scope, builder).where(NodeRow.level == level, row.start_ms <= at_ms)
    query = query.order_by(row.start_ms.desc(), NodeRow.number.desc()).limit(1)
    found = next(iter(_read(session, query)), None)
    return found if found and at_ms < found.span.end_ms else None


def nodes_numbered(
    session: Session, scope: Scope, builder: str, numbers: Collection[tuple[str, int]]
) -> dict[tuple[str, int], Node]:
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


def relations_stated(session: Session, scope: Scope, node: int, limit: int) -> list[RelationAt]:
    """Return the first relations that a node states, in order of time."""
    return _relations(session, scope, limit, RelationRow.node_id == node)


def relations_among(
    session: Session, scope: Scope, entities: Collection[int], limit: int
) -> list[RelationAt]:
    """Return the first relations between these entities, in order of time."""
    of_subject = is_any_of(RelationRow.subject_id, entities)
    return _relations(session, scope, limit, of_subject, is_any_of(RelationRow.object_id, entities))


def relations_about(
    session: Session, scope: Scope, entities: Collection[int], limit: int
) -> list[RelationAt]:
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
    of_builder = and_(row.video_id == scope.video, row.builder == builder, row.type == kind)
    named = is_any_text(row.name, map(str, numbers))
    return list(session.scalars(select(row.id).where(of_builder, named)))


_IN_TIME: Sequence[Any] = (NodeRevisionRow.start_ms, NodeRow.number)


_NODES = select(
    NodeRow.level,
    NodeRow.number,
    NodeRevisionRow.text,
    NodeRevisionRow.start_ms,
    NodeRevisionRow.end_ms,
    NodeRevisionRow.from_clip,
    NodeRevisionRow.label,
    NodeRow.id,
    NodeRow.builder,
).join(NodeRevisionRow, NodeRevisionRow.node_id == NodeRow.id)


def _nodes(scope: Scope, builder: str | None) -> Select[*tuple[Any, ...]]:
    n, r = NodeRow, NodeRevisionRow
    query = _NODES.where(n.video_id == scope.video, valid_at(r, scope.last_clip))
    return query if builder is None else query.where(n.builder == builder)


def _read(session: Session, query: Select[*tuple[Any, ...]]) -> list[Node]:
    return [
        Node(
            row.level,
            row.number,
            row.text,
            TimeSpan.of(row.start_ms, row.end_ms),
            row.from_clip,
            row.label,
            id=row.id,
            builder=row.builder,
        )
        for row in session.execute(query)
    ]


_RELATIONS = select(
    RelationRow.id,
    RelationRow.builder,
    RelationRow.level,
    RelationRow.subject_id,
    RelationRow.predicate,
    RelationRow.object_id,
    RelationRow.start_ms,
    RelationRow.end_ms,
)


def _relation(row: Any, total: int = 0) -> RelationAt:
    *fields, start, end = row[:8]
    return RelationAt._make((*fields, TimeSpan.of(start, end), total))


def _relations(session: Session, scope: Scope, limit: int, *which: Any) -> list[RelationAt]:
    row = RelationRow
    holds = and_(row.video_id == scope.video, valid_at(row, scope.last_clip))
    query = _RELATIONS.where(holds, *which).order_by(row.start_ms, row.id).limit(limit)
    return [_relation(found) for found in session.execute(query)]


# Parts of the event graph for display: some segments in order of time, and their edges.

_CLIPS = SegmentRevisionRow.clips
_BY_TIME = (_CLIPS[1], _CLIPS[func.cardinality(_CLIPS)], SegmentRow.id)


def segments_at(session: Session, video_id: str, clip: int) -> list[Segment]:
    """Return the segments of a video as of ``clip``, by number."""
    return _parts(session, video_id, _segments(video_id, clip).order_by(SegmentRow.number))


def segments_in_time(
    session: Session, video_id: str, clip: int, offset: int, limit: int
) -> list[Segment]:
    """Return ``limit`` segments of a video as of ``clip`` from the ``offset``-th on, by time."""
    query = _segments(video_id, clip).order_by(*_BY_TIME).offset(offset).limit(limit)
    return _parts(session, video_id, query)


def contents_of(session: Session, video_id: str, clip: int, most: int) -> list[Segment]:
    """Return at most ``most`` segments of a video as of ``clip``, evenly spaced, by time."""
    by_time = func.row_number().over(order_by=_BY_TIME).label("place")
    numbered = _segments(video_id, clip).add_columns(by_time, func.count().over().label("total"))
    rows = numbered.subquery()
    # Of so many parts of the same size, the first of each.
    part, before = ((rows.c.place - n) * most - 1 for n in (0, 1))
    chosen = (part + rows.c.total) // rows.c.total > (before + rows.c.total) // rows.c.total
    return _parts(session, video_id, select(rows).where(chosen).order_by(rows.c.place))


def segments_named(session: Session, video_id: str, clip: int, ids: Sequence[int]) -> list[Segment]:
    """Return those of these segments that are valid in a video as of ``clip``."""
    return _parts(session, video_id, _segments(video_id, clip).where(is_any_of(SegmentRow.id, ids)))


def segments_of_clip(session: Session, video_id: str, last_clip: int, clip: int) -> list[Segment]:
    """Return the segments of a video as of ``last_clip`` that a clip belongs to, by id."""
    of_clip = literal(clip) == func.any(SegmentRevisionRow.clips)
    return _parts(session, video_id, _segments(video_id, last_clip).where(of_clip))


def segments_written(session: Session, video_id: str, clip: int) -> list[Segment]:
    """Return the segments of a video that began or were extended after a clip, by number."""
    written = SegmentRevisionRow.from_clip == clip
    query = _segments(video_id, clip).where(written).order_by(SegmentRow.number)
    return _parts(session, video_id, query)


def count_segments(session: Session, video_id: str, clip: int) -> int:
    """Return the number of segments of a video as of ``clip``."""
    query = _segments(video_id, clip).with_only_columns(func.count(), maintain_column_froms=True)
    return session.scalar(query) or 0


def edges_at(session: Session, video_id: str, clip: int) -> list[Edge]:
    return _edges(session, clip, EdgeRow.video_id == video_id)


def edges_among(session: Session, ids: Sequence[int], clip: int) -> list[Edge]:
    """Return the edges as of ``clip`` that start and end at these segments, by id."""
    return _edges(
        session, clip, is_any_of(EdgeRow.source_id, ids), is_any_of(EdgeRow.target_id, ids)
    )


def edges_touching(session: Session, segment: int, clip: int) -> list[Edge]:
    """Return the edges as of ``clip`` that start or end at a segment, by id."""
    return _edges(session, clip, or_(EdgeRow.source_id == segment, EdgeRow.target_id == segment))


def _segments(video_id: str, clip: int) -> Select[*tuple[Any, ...]]:
    row = SegmentRevisionRow
    query = select(
        SegmentRow.id, SegmentRow.number, row.label, row.summary, row.clips, row.revision
    ).join(row, row.segment_id == SegmentRow.id)
    return query.where(SegmentRow.video_id == video_id, valid_at(row, clip))


def _parts(session: Session, video_id: str, query: Select[*tuple[Any, ...]]) -> list[Segment]:
    """Return segments; the span of each reaches from its first clip to its last.

    Missing clips are skipped: ``memory.event_graph`` reports them.
    """
    rows = session.execute(query).all()
    spans = clip_spans(session, video_id, {clip for row in rows for clip in row.clips})
    return [
        Segment(
            id=row.id,
            video=video_id,
            number=row.number,
            label=row.label,
            summary=row.summary,
            clips=tuple(row.clips),
            span=reduce(
                TimeSpan.union,
                [spans[clip] for clip in row.clips if clip in spans] or [TimeSpan.of(0, 0)],
            ),
            revision=row.revision,
        )
        for row in rows
    ]


def _edges(session: Session, clip: int, *conditions: ColumnElement[bool]) -> list[Edge]:
    query = EDGES.where(*conditions, valid_at(EdgeRow, clip))
    return [Edge(**edge) for edge in session.execute(query).mappings()]


# What strategies built that is about a moment of a video, as of a clip; each by its builder.


def builders_of(session: Session, video: str) -> dict[str, tuple[str, ...]]:
    """Return who built or kept anything of a video, sorted by name, each with who wrote it."""
    built, kept = BuildRow, KeeperRow
    begun = and_(built.video_id == video, built.through_clip >= 0)
    builds = select(built.builder, built.writers).where(begun)
    keepers = select(kept.builder).where(kept.video_id == video)
    writers: dict[str, tuple[str, ...]] = dict.fromkeys(session.scalars(keepers), ())
    writers |= {builder: tuple(names) for builder, names in session.execute(builds)}
    return dict(sorted(writers.items()))


def nodes_at(session: Session, scope: Scope, at_ms: int, most: int) -> list[Node]:
    """Return the nodes whose span holds a moment, shortest first, at most so many a builder."""
    n, r = NodeRow, NodeRevisionRow
    order = (r.end_ms - r.start_ms, n.level, n.number)
    place = func.row_number().over(partition_by=n.builder, order_by=order).label("place")
    holds = _nodes(scope, None).where(r.start_ms <= at_ms, r.end_ms > at_ms)
    ranked = holds.add_columns(place).subquery()
    first = select(ranked).where(ranked.c.place <= most).order_by(ranked.c.builder, ranked.c.place)
    return _read(session, first)


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
    holds = and_(
        r.video_id == scope.video,
        r.from_clip <= scope.last_clip,
        r.start_ms <= at_ms,
        or_(r.to_clip.is_(None), r.to_clip > clip),
    )
    ranked = _RELATIONS.add_columns(total, place).where(holds).subquery()
    first = select(ranked).where(ranked.c.place <= most).order_by(ranked.c.builder, ranked.c.place)
    return [_relation(row, row.total) for row in session.execute(first)]


def entities_named(session: Session, ids: Sequence[int]) -> dict[int, Entity]:
    row = EntityRow
    query = select(row.id, row.type, row.name, row.from_clip, row.attributes)
    found = session.execute(query.where(row.id.in_(sorted(set(ids)))))
    return {
        one.id: Entity(EntityKey(one.type, one.name), one.from_clip, one.attributes, id=one.id)
        for one in found
    }


def frames_near(
    session: Session, scope: Scope, at_ms: int, within_ms: int, most: int
) -> list[BuiltFrame]:
    """Return kept frames near a moment, in order of time; the nearest, at most so many a keeper."""
    row = FrameRow
    away = func.abs(row.time_ms - at_ms)
    place = func.row_number().over(partition_by=row.builder, order_by=(away, row.time_ms))
    near = and_(row.video_id == scope.video, row.clip <= scope.last_clip, away <= within_ms)
    ranked = FRAMES.add_columns(place.label("place")).where(near).subquery()
    first = select(ranked).where(ranked.c.place <= most)
    found = session.execute(first.order_by(ranked.c.builder, ranked.c.time_ms))
    return [BuiltFrame._make(fields) for *fields, _ in found]


BUILDER = "recap"


class Began(NamedTuple):
    """The time of day of a video's time 0: of a stream when it began, of a file when it was added.

    ``live``: it is a stream.
    """

    at: datetime
    live: bool

    def moment(self, time_ms: int) -> datetime:
        """Return the time of day of a moment of a stream; that of a file is not known."""
        return self.at + timedelta(milliseconds=time_ms) if self.live else self.at


def began_at(session: Session, video: str) -> datetime | None:
    """Return the time of day of a video's time 0: of a file, when it was added."""
    began = began_times(session, [video]).get(video)
    return began.at if began else None


def began_times(session: Session, videos: Sequence[str]) -> dict[str, Began]:
    """Return the time of day of each video's time 0."""
    began = func.to_timestamp(StreamRow.began_ms / 1000.0)
    query = select(
        VideoRow.id, func.coalesce(began, VideoRow.created_at), began.is_not(None)
    ).select_from(VideoRow)
    query = query.outerjoin(StreamRow, StreamRow.video_id == VideoRow.id)
    rows = session.execute(query.where(is_any_text(VideoRow.id, videos)))
    return {video: Began(at, live) for video, at, live in rows}


def last_clip_within(session: Session, video: str, span: TimeSpan) -> int | None:
    """Return the last clip in memory that overlaps a span; None: there is none."""
    row = ClipRow
    query = select(func.max(row.clip)).where(
        row.video_id == video,
        row.state == ClipState.DONE,
        row.start_ms < span.end_ms,
        row.end_ms > span.start_ms,
    )
    return session.scalar(query)


# Recaps are nodes of a builder of their own, so they go with what they rest on.
def put_recap(
    session: Session, video: str, period: Period, span: TimeSpan, words: str, clip: int
) -> None:
    """Store a recap, in place of an earlier one of the period; it is known from ``clip`` on."""
    row = NodeRow
    same = and_(row.builder == BUILDER, row.level == period.kind, row.number == period.number)
    session.execute(delete(row).where(row.video_id == video, same))
    node = NodeRow(video_id=video, builder=BUILDER, level=period.kind, number=period.number)
    session.add(node)
    session.flush()
    revision = NodeRevisionRow(
        node_id=node.id,
        label=period.name,
        text=words,
        start_ms=span.start_ms,
        end_ms=span.end_ms,
        children=[],
        from_clip=clip,
        to_clip=None,
    )
    session.add(revision)


def recaps_page(session: Session, offset: int, limit: int) -> tuple[list[Recap], int]:
    """Return a page of the recaps, the latest first, and how many there are."""
    query = """
        SELECT n.video_id AS video, v.title, n.level AS kind, r.label AS period, r.text,
            json_build_object('start_ms', r.start_ms, 'end_ms', r.end_ms) AS span
        FROM nodes AS n JOIN node_revisions AS r ON r.node_id = n.id
            JOIN videos AS v ON v.id = n.video_id
        WHERE n.builder = :builder ORDER BY n.number DESC, n.level, v.title, n.id
        OFFSET :offset LIMIT :limit
    """
    wanted = {"builder": BUILDER, "offset": offset, "limit": limit}
    rows = session.execute(text(query), wanted).mappings()
    of_builder = select(func.count()).where(NodeRow.builder == BUILDER)
    return [Recap.model_validate(dict(row)) for row in rows], session.scalar(of_builder) or 0
