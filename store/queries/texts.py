"""Clips as plain text: all lines of each, with its span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import and_, false, func, or_, select
from sqlalchemy.orm import Session

from domain.time import TimeSpan
from domain.view import Scope
from store.tables.schema import ClipRow, MemoryRow, UtteranceRow


class ClipText(NamedTuple):
    """A clip's span, and its lines as text."""

    start_ms: int
    end_ms: int
    text: str


def clip_texts(session: Session, video: str) -> list[ClipText]:
    """Return every clip of a video that has memories, in order."""
    rows = session.execute(
        select(ClipRow.start_ms, ClipRow.end_ms, ClipRow.text)
        .where(ClipRow.video_id == video, ClipRow.text != "")
        .order_by(ClipRow.clip)
    )
    return [ClipText._make(row) for row in rows]


def memories_within(session: Session, scope: Scope, spans: Sequence[TimeSpan]) -> list[str]:
    """Return the memories in view of the clips that overlap one of ``spans``."""
    line, clip = MemoryRow, ClipRow
    ends = [(s.start_ms, max(s.end_ms, s.start_ms + 1)) for s in spans]
    overlapping = [and_(clip.start_ms < end, clip.end_ms > start) for start, end in ends]
    texts = session.scalars(
        select(line.text)
        .join(clip, and_(clip.video_id == line.video_id, clip.clip == line.clip))
        .where(
            line.video_id == scope.video, line.clip <= scope.last_clip, or_(false(), *overlapping)
        )
        .where(or_(line.superseded_at.is_(None), line.superseded_at > scope.last_clip))
        .order_by(line.clip, line.id)
    )
    return list(texts)


def languages_heard(session: Session, video: str, last_clip: int) -> list[str]:
    """Return the recognised languages of a video up to a clip, the most frequent first."""
    row = UtteranceRow
    languages = session.scalars(
        select(row.language)
        .where(
            row.video_id == video,
            row.clip <= last_clip,
            row.origin == "speech",
            row.language != "",
        )
        .group_by(row.language)
        .order_by(func.count().desc(), row.language)
    )
    return list(languages)
