"""Recaps on record: nodes of a builder of their own, which go with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import and_, delete, func, select, text
from sqlalchemy.orm import Session

from domain.media import ClipState
from domain.recaps import Period, Recap
from domain.time import TimeSpan
from store.queries.conditions import is_any_text
from store.tables.schema import ClipRow, NodeRevisionRow, NodeRow, StreamRow, VideoRow

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
