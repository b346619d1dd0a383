"""What is to be seen at a moment of a video."""

from __future__ import annotations

import re

from domain.base import Frozen
from domain.time import TimeSpan
from store.database import Store
from store.queries.clips import clip_at
from store.queries.frames import Frame, frame_near, frame_of

NEAR_MS = 20_000
"""A frame further from a moment than this does not show it."""

_FRAME = re.compile(r"k([1-9]\d{0,17})")


class ShownFrame(Frozen):
    """A stored frame: its number, the SHA-256 of its JPEG, and its time."""

    id: int
    blob: str
    span: TimeSpan


def frame_at(store: Store, video: str, at_ms: int, ref: str = "") -> ShownFrame | None:
    """The keyframe that ``ref`` (``k7``) names, else the one nearest to the moment, if one is.

    None where the video has none near, and where ``video`` is no video.
    """
    named = _FRAME.fullmatch(ref)
    with store.begin() as session:
        if named:
            found = frame_of(session, video, int(named[1]))
        else:
            clip = clip_at(session, video, at_ms)
            around = [] if clip is None else [clip - 1, clip, clip + 1]
            found = _near(frame_near(session, video, at_ms, around), at_ms)
    if found is None:
        return None
    return ShownFrame(id=found.id, blob=found.blob, span=TimeSpan.of(found.time_ms, found.time_ms))


def _near(found: Frame | None, at_ms: int) -> Frame | None:
    return found if found and abs(found.time_ms - at_ms) <= NEAR_MS else None
