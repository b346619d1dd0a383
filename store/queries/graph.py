"""Parts of the event graph for display: some segments in order of time, and their edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal, or_, select
from sqlalchemy.orm import Session

from domain.memories import Edge, Segment
from domain.time import TimeSpan
from store.queries.conditions import is_any_of, valid_at
from store.queries.events import as_edge, edge_at
from store.tables.schema import ClipRow, EdgeRow, SegmentRevisionRow, SegmentRow

_CLIPS = SegmentRevisionRow.clips
_BY_TIME = (_CLIPS[1], _CLIPS[func.cardinality(_CLIPS)], SegmentRow.id)


def segments_in_time(
    session: Session, video_id: str, clip: int, offset: int, limit: int
) -> list[Segment]:
    """Return ``limit`` segments of a video as of ``clip`` from the ``offset``-th on, by time."""
    query = _segments(video_id, clip).order_by(*_BY_TIME).offset(offset).limit(limit)
    return _read(session, video_id, query)


def contents_of(session: Session, video_id: str, clip: int, most: int) -> list[Segment]:
    """Return at most ``most`` segments of a video as of ``clip``, evenly spaced, by time."""
    by_time = func.row_number().over(order_by=_BY_TIME).label("place")
    numbered = _segments(video_id, clip).add_columns(by_time, func.count().over().label("total"))
    rows = numbered.subquery()
    # Of so many parts of the same size, the first of each.
    part, before = ((rows.c.place - n) * most - 1 for n in (0, 1))
    chosen = (part + rows.c.total) // rows.c.total > (before + rows.c.total) // rows.c.total
    return _read(session, video_id, select(rows).where(chosen).order_by(rows.c.place))


def segments_named(session: Session, video_id: str, clip: int, ids: Sequence[int]) -> list[Segment]:
    """Return those of these segments that are valid in a video as of ``clip``."""
    return _read(session, video_id, _segments(video_id, clip).where(is_any_of(SegmentRow.id, ids)))


def segments_of_clip(session: Session, video_id: str, last_clip: int, clip: int) -> list[Segment]:
    """Return the segments of a video as of ``last_clip`` that a clip belongs to, by id."""
    of_clip = literal(clip) == func.any(SegmentRevisionRow.clips)
    return _read(session, video_id, _segments(video_id, last_clip).where(of_clip))


def segments_written(session: Session, video_id: str, clip: int) -> list[Segment]:
    """Return the segments of a video that began or were extended after a clip, by number."""
    written = SegmentRevisionRow.from_clip == clip
    query = _segments(video_id, clip).where(written).order_by(SegmentRow.number)
    return _read(session, video_id, query)


def count_segments(session: Session, video_id: str, clip: int) -> int:
    """Return the number of segments of a video as of ``clip``."""
    query = _segments(video_id, clip).with_only_columns(func.count(), maintain_column_froms=True)
    return session.scalar(query) or 0


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
    columns = (SegmentRow.id, SegmentRow.number, row.label, row.summary, row.clips, row.revision)
    query = select(*columns).join(row, row.segment_id == SegmentRow.id)
    return query.where(SegmentRow.video_id == video_id, valid_at(row, clip))


def _read(session: Session, video_id: str, query: Select[*tuple[Any, ...]]) -> list[Segment]:
    rows = session.execute(query).all()
    spans = _spans(session, video_id, [clip for row in rows for clip in row[4]])
    return [
        Segment(
            id=row[0],
            video=video_id,
            number=row[1],
            label=row[2],
            summary=row[3],
            clips=tuple(row[4]),
            span=_covering_span([spans[clip] for clip in row[4] if clip in spans]),
            revision=row[5],
        )
        for row in rows
    ]


def _spans(session: Session, video_id: str, clips: Sequence[int]) -> dict[int, tuple[int, int]]:
    row = ClipRow
    query = select(row.clip, row.start_ms, row.end_ms)
    query = query.where(row.video_id == video_id, is_any_of(row.clip, clips))
    return {clip: (start, end) for clip, start, end in session.execute(query)}


def _covering_span(spans: Sequence[tuple[int, int]]) -> TimeSpan:
    """Return the span from the first to the last; missing clips are skipped."""
    starts, ends = zip(*spans, strict=True) if spans else ((0,), (0,))
    return TimeSpan.of(min(starts), max(ends))


def _edges(session: Session, clip: int, *conditions: ColumnElement[bool]) -> list[Edge]:
    query = select(EdgeRow).where(*conditions, valid_at(EdgeRow, clip)).order_by(EdgeRow.id)
    return [as_edge(edge_at(row)) for row in session.scalars(query)]
