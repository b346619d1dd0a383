"""Clips as plain texts: all lines of each, with its span."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.schema import ClipRow, UtteranceRow


class ClipText(NamedTuple):
    """A clip's lines, one a line, and when it begins and ends."""

    start_ms: int
    end_ms: int
    text: str


def clip_texts(session: Session, video: str) -> list[ClipText]:
    """Every clip of a video that something was remembered of, in order."""
    found = session.execute(
        select(ClipRow.start_ms, ClipRow.end_ms, ClipRow.text)
        .where(ClipRow.video_id == video, ClipRow.text != "")
        .order_by(ClipRow.clip)
    )
    return [ClipText._make(row) for row in found]


def languages_heard(session: Session, video: str, last_clip: int) -> list[str]:
    """The languages spoken in a video up to a clip, the most spoken first, as recognised."""
    row = UtteranceRow
    found = session.scalars(
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
    return list(found)
