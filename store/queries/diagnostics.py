"""Recent failures, and the size of the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import cast, func, select, text
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.orm import Session

from store.migrations import HEAD, revision_of
from store.queries.blobs import blob_bytes
from store.queries.conditions import is_left
from store.tables.schema import (
    Base,
    ClipRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    VideoRow,
)


def recent_failed_clips(session: Session, limit: int) -> list[tuple[str, str, int, datetime, str]]:
    """Return video, title and number of the clips that failed last, when, and the error."""
    c = ClipRow
    query = (
        select(c.video_id, VideoRow.title, c.clip, c.updated_at, func.coalesce(c.error, ""))
        .join(VideoRow, VideoRow.id == c.video_id)
        .where(is_left())
        .order_by(c.updated_at.desc(), c.video_id, c.clip)
    )
    found = session.execute(query.limit(limit))
    return [(video, title, clip, at, error) for video, title, clip, at, error in found]


def recent_failed_runs(session: Session, limit: int) -> list[tuple[str, str, datetime, str]]:
    """Return id and question of the runs that failed last, when, and the error."""
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
    return [tuple(row) for row in session.execute(query.limit(limit))]


def database_bytes(session: Session) -> int:
    return session.scalar(select(func.pg_database_size(func.current_database()))) or 0


@dataclass(frozen=True)
class VideoOutline:
    """A video without its title; ``path`` is for checking the file, not for display.

    ``clips`` counts them by state; ``errors`` are those of failed clips, for classification.
    """

    id: str
    path: str | None
    facts: dict[str, Any]
    clips: dict[str, int]
    seconds: float
    errors: tuple[str, ...]


def database_facts(session: Session) -> dict[str, Any]:
    """Return versions of the server, pgvector and the schema, and sizes."""
    vector = session.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    return {
        "server": session.scalar(text("SHOW server_version_num")),
        "pgvector": vector,
        "revision": revision_of(session.connection()),
        "head": HEAD,
        "bytes": database_bytes(session),
        "image_bytes": blob_bytes(session),
    }


def table_sizes(session: Session) -> list[dict[str, str | int]]:
    """Return every table's number of rows, and its bytes with indexes and large values, by name."""
    return [
        {
            "table": name,
            "rows": session.scalar(select(func.count()).select_from(table)) or 0,
            "bytes": session.scalar(select(func.pg_total_relation_size(cast(name, REGCLASS)))) or 0,
        }
        for name, table in sorted(Base.metadata.tables.items())
    ]


def outline_videos(session: Session, limit: int) -> list[VideoOutline]:
    """Return the outlines of the videos added last."""
    v = VideoRow
    rows = session.execute(select(v).order_by(v.created_at.desc(), v.id).limit(limit)).scalars()
    c, outlines = ClipRow, list[VideoOutline]()
    for row in rows:
        counted = select(c.state, func.count(), func.sum(c.seconds)).where(c.video_id == row.id)
        clips = session.execute(counted.group_by(c.state).order_by(c.state)).all()
        failed = select(c.error).where(c.video_id == row.id, c.error.is_not(None)).order_by(c.clip)
        facts = ("duration_ms", "width", "height", "has_video", "has_audio", "state")
        outline = VideoOutline(
            id=row.id,
            path=row.path,
            facts={name: getattr(row, name) for name in facts}
            | {"writer_models": len(row.models), "subtitles": len(row.subtitles or ())},
            clips={str(state): count for state, count, _ in clips},
            seconds=round(sum(float(seconds or 0) for _, _, seconds in clips), 3),
            errors=tuple(error or "" for error in session.scalars(failed)),
        )
        outlines.append(outline)
    return outlines


def outline_trajectories(
    session: Session, limit: int
) -> list[tuple[str, dict[str, Any], list[tuple[datetime, str, str, dict[str, Any]]]]]:
    """Return id, facts and events as stored of the latest runs; leave out what has text."""
    t, e = TrajectoryRow, TrajectoryEventRow
    rows = session.scalars(select(t).order_by(t.started_at.desc(), t.id).limit(limit)).all()
    return [
        (
            row.id,
            {
                "state": row.state,
                "machine": row.machine,
                "tokens": row.tokens,
                "seconds": round(row.seconds, 3),
                "answered": row.answer is not None,
            },
            [
                (event.at, event.kind, event.step, event.payload)
                for event in session.scalars(
                    select(e).where(e.trajectory_id == row.id).order_by(e.seq)
                )
            ],
        )
        for row in rows
    ]
