"""Keyframes near a moment of a video."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.errors import NotFound
from domain.time import TimeSpan
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.database import Store
from store.queries.clips import clip_at, memory_view
from store.queries.keyframes import StoredKeyframe, frame_near, frame_of, frames_of

NEAR_MS = 20_000
"""A frame further from a moment than this many milliseconds does not show it."""

_FRAME = re.compile(r"k([1-9]\d{0,17})")


class ShownFrame(Frozen):
    """A stored frame: its number, the SHA-256 of its JPEG, and its time."""

    id: int
    blob: str
    span: TimeSpan


def frame_at(
    store: Store, video: str, at_ms: int, ref: str = "", as_of_ms: int | None = None
) -> ShownFrame | None:
    """Return the keyframe that ``ref`` (``k7``) names, else the one nearest to the moment.

    None if the video has none near, or if there is no such video. With ``as_of_ms`` only frames
    count that a question as of then may see.
    """
    named = _FRAME.fullmatch(ref)
    with store.begin() as session:
        last = _last(session, video, as_of_ms)
        if named:
            frame = frame_of(session, video, int(named[1]))
        else:
            clip = clip_at(session, video, at_ms)
            around = [] if clip is None else [clip - 1, clip, clip + 1]
            visible = [number for number in around if number <= last]
            frame = _near(frame_near(session, video, at_ms, visible), at_ms)
    if frame is None or frame.clip > last:
        return None
    return ShownFrame(id=frame.id, blob=frame.blob, span=TimeSpan.of(frame.time_ms, frame.time_ms))


def frames_around(store: Store, video: str, at_ms: int, most: int = 6) -> list[StoredKeyframe]:
    """Return the ``most`` keyframes nearest to a moment, in order of time, with known names."""
    with store.begin() as session:
        clip = clip_at(session, video, at_ms)
        frames = [] if clip is None else frames_of(session, video, [clip - 1, clip, clip + 1])
        last = memory_view(session, [video]).scopes[0].last_clip if frames else -1
        known = characters_at(session, video, last) if frames else []
    people = ClipPeople(characters=tuple(one.character for one in known))
    near = [frame for frame in frames if abs(frame.time_ms - at_ms) <= NEAR_MS]
    nearest = sorted(near, key=lambda frame: (abs(frame.time_ms - at_ms), frame.time_ms))[:most]
    ordered = sorted(nearest, key=lambda frame: (frame.time_ms, frame.id))
    return [replace(one, description=people.display(one.description or "")) for one in ordered]


def _last(session: Session, video: str, as_of_ms: int | None) -> float:
    """Return the last clip that may be seen; -1 if none may."""
    if as_of_ms is None:
        return math.inf
    with suppress(NotFound):
        return memory_view(session, [video], as_of_ms).scopes[0].last_clip
    return -1


def _near(frame: StoredKeyframe | None, at_ms: int) -> StoredKeyframe | None:
    return frame if frame and abs(frame.time_ms - at_ms) <= NEAR_MS else None
