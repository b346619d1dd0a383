"""Recaps on record: nodes of a builder of their own, which go with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.media import ClipState
from domain.recaps import Period
from domain.time import TimeSpan
from store.queries.conditions import is_any_text
from store.tables.schema import ClipRow, NodeRevisionRow, NodeRow, StreamRow, VideoRow

BUILDER = "recap"


@dataclass(frozen=True)
class StoredRecap:
    """A recap of a video: the period's kind and name, its span of video time, and its text."""

    video: str
    title: str
    kind: str
    period: str
    span: TimeSpan
    text: str


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
    columns = (func.coalesce(began, VideoRow.created_at), began.is_not(None))
    query = select(VideoRow.id, *columns).select_from(VideoRow)
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
    session: Session, video: str, period: Period, span: TimeSpan, text: str, clip: int
) -> None:
    """Store a recap, in place of an earlier one of the period; it is known from ``clip`` on."""
    row = NodeRow
    same = (row.builder == BUILDER, row.level == period.kind, row.number == period.number)
    session.execute(delete(row).where(row.video_id == video, *same))
    node = NodeRow(video_id=video, builder=BUILDER, level=period.kind, number=period.number)
    session.add(node)
    session.flush()
    revision = NodeRevisionRow(
        node_id=node.id,
        label=period.name,
        text=text,
        start_ms=span.start_ms,
        end_ms=span.end_ms,
        children=[],
        from_clip=clip,
        to_clip=None,
    )
    session.add(revision)


def recaps_page(session: Session, offset: int, limit: int) -> tuple[Sequence[StoredRecap], int]:
    """Return a page of the recaps, the latest first, and how many there are."""
    node, revision = NodeRow, NodeRevisionRow
    total = session.scalar(select(func.count()).where(node.builder == BUILDER)) or 0
    columns = (revision.label, revision.start_ms, revision.end_ms, revision.text)
    query = (
        select(node.video_id, VideoRow.title, node.level, *columns)
        .join(revision, revision.node_id == node.id)
        .join(VideoRow, VideoRow.id == node.video_id)
        .where(node.builder == BUILDER)
        .order_by(node.number.desc(), node.level, VideoRow.title, node.id)
    )
    rows = session.execute(query.offset(offset).limit(limit))
    recaps = [
        StoredRecap(video, title, kind, label, TimeSpan.of(start, end), text)
        for video, title, kind, label, start, end, text in rows
    ]
    return recaps, total
