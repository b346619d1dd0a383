"""Keyframes for display: the one nearest to a moment, those of some clips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.tables.schema import KeyframeRow


@dataclass(frozen=True, slots=True)
class StoredKeyframe:
    """A stored frame: ``blob`` is the SHA-256 of its JPEG."""

    id: int
    clip: int
    time_ms: int
    blob: str
    description: str | None


_COLUMNS = (
    KeyframeRow.id,
    KeyframeRow.clip,
    KeyframeRow.time_ms,
    KeyframeRow.blob,
    KeyframeRow.description,
)


def frame_near(
    session: Session, video_id: str, at_ms: int, clips: Sequence[int]
) -> StoredKeyframe | None:
    """Return the keyframe in ``clips`` nearest to a moment, the earlier of two."""
    row = KeyframeRow
    query = select(*_COLUMNS).where(row.video_id == video_id, row.clip.in_(clips))
    query = query.order_by(func.abs(row.time_ms - at_ms), row.time_ms, row.id).limit(1)
    fields = session.execute(query).first()
    return StoredKeyframe(*fields) if fields else None


def frame_of(session: Session, video_id: str, frame_id: int) -> StoredKeyframe | None:
    """Return the keyframe with that id if it is of that video."""
    row = KeyframeRow
    query = select(*_COLUMNS).where(row.video_id == video_id, row.id == frame_id)
    fields = session.execute(query).first()
    return StoredKeyframe(*fields) if fields else None


def frames_of(session: Session, video_id: str, clips: Sequence[int]) -> list[StoredKeyframe]:
    """Return the keyframes of some clips, in order of time."""
    row = KeyframeRow
    query = select(*_COLUMNS).where(row.video_id == video_id, row.clip.in_(clips))
    return [
        StoredKeyframe(*fields) for fields in session.execute(query.order_by(row.time_ms, row.id))
    ]
