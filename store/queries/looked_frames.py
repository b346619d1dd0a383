"""Frames that a question had decoded, stored beside the keyframes that watching chose.

They have refs like keyframes, go with their clip, and are forgotten, exported and backed up like
them; searches that rank keyframes and dumps leave them out, so that asking changes neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from store.queries.clip_contents import KEYFRAME_COLUMNS, KeyframeOnClip
from store.queries.percepts import add_blobs
from store.tables.schema import LOOKED_AT, KeyframeRow


class LookedFrame(NamedTuple):
    """A decoded frame; ``blob`` is the SHA-256 of its JPEG, ``size`` its bytes."""

    clip: int
    time_ms: int
    width: int
    height: int
    blob: str
    size: int


def add_looked_frames(
    session: Session, video: str, frames: Iterable[LookedFrame]
) -> list[KeyframeOnClip]:
    """Store frames of a video, each once, and return them as they are stored, in their order."""
    wanted = list(frames)
    add_blobs(session, video, {frame.blob: frame.size for frame in wanted})
    return [_stored(session, video, one) or _added(session, video, one) for one in wanted]


def _stored(session: Session, video: str, frame: LookedFrame) -> KeyframeOnClip | None:
    row = KeyframeRow
    query = select(*KEYFRAME_COLUMNS).where(
        row.video_id == video,
        row.clip == frame.clip,
        row.time_ms == frame.time_ms,
        row.blob == frame.blob,
    )
    fields = session.execute(query.order_by(row.id).limit(1)).first()
    return KeyframeOnClip._make(fields) if fields else None


def _added(session: Session, video: str, frame: LookedFrame) -> KeyframeOnClip:
    values: dict[str, Any] = {
        "video_id": video,
        "clip": frame.clip,
        "time_ms": frame.time_ms,
        "shot": LOOKED_AT,
        "width": frame.width,
        "height": frame.height,
        "blob": frame.blob,
    }
    unmeasured = dict.fromkeys(("sharpness", "entropy", "quality"), 0.0)
    added = insert(KeyframeRow).values(**values, **unmeasured).returning(*KEYFRAME_COLUMNS)
    return KeyframeOnClip._make(session.execute(added).one())
