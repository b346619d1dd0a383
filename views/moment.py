"""What is to be seen at a moment of a video."""

from __future__ import annotations

import math
import re
from contextlib import suppress

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.errors import NotFound
from domain.time import TimeSpan
from store.database import Store
from store.queries.clips import clip_at, view_of
from store.queries.frames import StoredKeyframe, frame_near, frame_of, frames_of

NEAR_MS = 20_000
"""A frame further from a moment than this does not show it."""

_FRAME = re.compile(r"k([1-9]\d{0,17})")


class ShownFrame(Frozen):
    """A stored frame: its number, the SHA-256 of its JPEG, and its time."""

    id: int
    blob: str
    span: TimeSpan


def frame_at(
    store: Store, video: str, at_ms: int, ref: str = "", as_of_ms: int | None = None
) -> ShownFrame | None:
    """The keyframe that ``ref`` (``k7``) names, else the one nearest to the moment, if one is.

    None where the video has none near, and where ``video`` is no video. With ``as_of_ms`` only
    frames count that a question as of then may see.
    """
    named = _FRAME.fullmatch(ref)
    with store.begin() as session:
        last = _last(session, video, as_of_ms)
        if named:
            found = frame_of(session, video, int(named[1]))
        else:
            clip = clip_at(session, video, at_ms)
            around = [] if clip is None else [clip - 1, clip, clip + 1]
            seen = [one for one in around if one <= last]
            found = _near(frame_near(session, video, at_ms, seen), at_ms)
    if found is None or found.clip > last:
        return None
    return ShownFrame(id=found.id, blob=found.blob, span=TimeSpan.of(found.time_ms, found.time_ms))


def frames_around(store: Store, video: str, at_ms: int, most: int = 6) -> list[StoredKeyframe]:
    """The keyframes near a moment in time, the ``most`` nearest to it."""
    with store.begin() as session:
        clip = clip_at(session, video, at_ms)
        found = [] if clip is None else frames_of(session, video, [clip - 1, clip, clip + 1])
    near = [one for one in found if abs(one.time_ms - at_ms) <= NEAR_MS]
    nearest = sorted(near, key=lambda one: (abs(one.time_ms - at_ms), one.time_ms))[:most]
    return sorted(nearest, key=lambda one: (one.time_ms, one.id))


def _last(session: Session, video: str, as_of_ms: int | None) -> float:
    """The last clip that may be seen; -1 where none may."""
    if as_of_ms is None:
        return math.inf
    with suppress(NotFound):
        return view_of(session, [video], as_of_ms).scopes[0].last_clip
    return -1


def _near(found: StoredKeyframe | None, at_ms: int) -> StoredKeyframe | None:
    return found if found and abs(found.time_ms - at_ms) <= NEAR_MS else None
