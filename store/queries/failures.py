"""Recent failures, and the size of the database."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from domain.media import ClipState
from store.tables.schema import (
    ClipRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    VideoRow,
)


class FailedClip(NamedTuple):
    """A clip that failed."""

    video: str
    title: str
    clip: int
    at: datetime
    told: str


class FailedRun(NamedTuple):
    """A question whose run failed."""

    id: str
    question: str
    at: datetime
    told: str


def recent_failed_clips(session: Session, limit: int) -> list[FailedClip]:
    """Return the clips that failed last."""
    c = ClipRow
    query = (
        select(c.video_id, VideoRow.title, c.clip, c.updated_at, func.coalesce(c.error, ""))
        .join(VideoRow, VideoRow.id == c.video_id)
        .where(c.state == ClipState.FAILED)
        .order_by(c.updated_at.desc(), c.video_id, c.clip)
    )
    return [FailedClip(*row) for row in session.execute(query.limit(limit))]


def recent_failed_runs(session: Session, limit: int) -> list[FailedRun]:
    """Return the runs that failed last, with their error."""
    t, e = TrajectoryRow, TrajectoryEventRow
    message = (
        select(e.payload["message"].as_string())
        .where(e.trajectory_id == t.id, e.kind == "error")
        .order_by(e.seq.desc())
        .limit(1)
        .correlate(t)
        .scalar_subquery()
    )
    query = (
        select(t.id, QuestionRow.text, t.started_at, func.coalesce(message, ""))
        .join(QuestionRow, QuestionRow.id == t.question_id)
        .where(t.state == "failed")
        .order_by(t.started_at.desc(), t.id)
    )
    return [FailedRun(*row) for row in session.execute(query.limit(limit))]


def database_bytes(session: Session) -> int:
    """Return the size of the database on its disk in bytes."""
    return session.scalar(select(func.pg_database_size(func.current_database()))) or 0
