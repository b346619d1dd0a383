"""Search indexes of videos, stored for later processes."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.driver import driver_of
from store.tables.schema import SearchIndexRow, VideoRow


class CachedIndex(NamedTuple):
    """An index: ``body`` covers the lines up to clip ``through``, whose state is ``key``."""

    key: str
    through: int
    body: bytes


def cached_index_keys(session: Session, videos: Collection[str]) -> dict[str, tuple[str, int]]:
    """Return ``key`` and ``through`` of the stored indexes of these videos."""
    row = SearchIndexRow
    query = select(row.video_id, row.key, row.through).where(row.video_id.in_(videos))
    return {video: (key, through) for video, key, through in session.execute(query)}


def cached_index_body(session: Session, video: str) -> bytes:
    """Return the stored index of a video, without SQLAlchemy, which would fetch it as text."""
    query = "SELECT body FROM search_indexes WHERE video_id = %s"
    with driver_of(session.connection()).cursor(binary=True) as cursor:
        fields = cursor.execute(query, (video,)).fetchone()
    return fields[0] if fields else b""


_KEEP = """
    INSERT INTO search_indexes (video_id, key, through, body) VALUES (%s, %s, %s, %b)
    ON CONFLICT (video_id) DO UPDATE
    SET key = EXCLUDED.key, through = EXCLUDED.through, body = EXCLUDED.body
"""


def cache_index(session: Session, video: str, version: int, index: CachedIndex) -> bool:
    """Store an index, unless the video is being or was rewritten since.

    Args:
        session: A transaction that sees other commits and ends soon: deletions from the video wait
            for it.
        video: Its id.
        version: ``Stamp.version`` of what the index was built from.
        index: The index.

    Returns:
        Whether it was stored.
    """
    row = select(VideoRow.id).where(VideoRow.id == video, VideoRow.rewritten == version)
    if session.scalar(row.with_for_update(read=True, skip_locked=True)) is None:
        return False
    driver_of(session.connection()).execute(_KEEP, (video, *index))
    return True
