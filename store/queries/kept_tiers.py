"""The kept frames of a video by tier: how many there are, their bytes, and some of each."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from store.tables.schema import BlobRow, FrameRow


class TierTotal(NamedTuple):
    """The frames that a keeper has in a tier: how many, their bytes, the first and last time."""

    builder: str
    tier: int
    frames: int
    bytes: int
    first_ms: int
    last_ms: int


class TierFrame(NamedTuple):
    """A kept frame: ``blob`` is the SHA-256 of its JPEG."""

    builder: str
    tier: int
    time_ms: int
    blob: str


def tier_totals(session: Session, video_id: str) -> list[TierTotal]:
    """Return the totals of each keeper's tiers, from the youngest tier on."""
    row, blob = FrameRow, BlobRow
    found = (func.count(), func.coalesce(func.sum(blob.size), 0))
    query = select(
        row.builder, row.tier, *found, func.min(row.time_ms), func.max(row.time_ms)
    ).outerjoin(blob, and_(blob.video_id == row.video_id, blob.sha256 == row.blob))
    of_video = query.where(row.video_id == video_id).group_by(row.builder, row.tier)
    rows = session.execute(of_video.order_by(row.builder, row.tier))
    return [TierTotal(name, tier, n, int(size), *times) for name, tier, n, size, *times in rows]


def spread_of_tiers(session: Session, video_id: str, most: int) -> list[TierFrame]:
    """Return at most so many frames of each tier, evenly spread, in order of time.

    The last frame of a tier is among them.
    """
    row = FrameRow
    of_tier = (row.builder, row.tier)
    part = func.ntile(most).over(partition_by=of_tier, order_by=row.time_ms).label("part")
    parts = select(*of_tier, row.time_ms, row.blob, part).where(row.video_id == video_id).subquery()
    kept = parts.c
    last = select(kept.builder, kept.tier, kept.time_ms, kept.blob)
    last = last.ext(distinct_on(kept.builder, kept.tier, kept.part))
    rows = session.execute(last.order_by(kept.builder, kept.tier, kept.part, kept.time_ms.desc()))
    return [TierFrame(*found) for found in rows]
