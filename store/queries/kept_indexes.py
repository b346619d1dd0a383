"""Indexes that searching worked out of videos, kept for the next process."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.driver import driver_of
from store.tables.schema import SearchIndexRow, VideoRow


class CachedIndex(NamedTuple):
    """``body`` is of the lines up to clip ``through``, as they were when ``key`` told of them."""

    key: str
    through: int
    body: bytes


def kept_keys(session: Session, videos: Collection[str]) -> dict[str, tuple[str, int]]:
    """``key`` and ``through`` of what is kept of these videos."""
    row = SearchIndexRow
    query = select(row.video_id, row.key, row.through).where(row.video_id.in_(videos))
    return {video: (key, through) for video, key, through in session.execute(query)}


def kept_body(session: Session, video: str) -> bytes:
    """What is kept of a video; past SQLAlchemy, which would have it sent as text."""
    query = "SELECT body FROM search_indexes WHERE video_id = %s"
    with driver_of(session.connection()).cursor(binary=True) as cursor:
        found = cursor.execute(query, (video,)).fetchone()
    return found[0] if found else b""


_KEEP = """
    INSERT INTO search_indexes (video_id, key, through, body) VALUES (%s, %s, %s, %b)
    ON CONFLICT (video_id) DO UPDATE
    SET key = EXCLUDED.key, through = EXCLUDED.through, body = EXCLUDED.body
"""


def keep_index(session: Session, video: str, version: int, kept: CachedIndex) -> bool:
    """Keep an index, unless anything was deleted or said anew of the video, or is about to be.

    Args:
        session: a transaction that sees what others commit, to be ended soon: whoever deletes of
            the video waits for it.
        video: its id.
        version: ``Stamp.version`` of what the index was made from.
        kept: what to keep.

    Returns:
        Whether it is kept.
    """
    row = select(VideoRow.id).where(VideoRow.id == video, VideoRow.rewritten == version)
    if session.scalar(row.with_for_update(read=True, skip_locked=True)) is None:
        return False
    driver_of(session.connection()).execute(_KEEP, (video, *kept))
    return True
