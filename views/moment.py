"""Images of a moment of a video: the one that a ref names, keyframes near it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.built import BuiltFrame
from domain.errors import NotFound
from domain.time import TimeSpan
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.database import Store
from store.queries.clips import clip_at, memory_view
from store.queries.frames import kept_frame
from store.queries.keyframes import StoredKeyframe, frame_near, frame_of, frames_of

NEAR_MS = 20_000
"""A frame further from a moment than this many milliseconds does not show it."""

_IMAGE = re.compile(r"([kf])([1-9]\d{0,17})")


class ShownFrame(Frozen):
    """A stored image: its ref (``k7``), the SHA-256 of its JPEG, and its time."""

    ref: str
    blob: str
    span: TimeSpan


def frame_at(
    store: Store, video: str, at_ms: int, ref: str = "", as_of_ms: int | None = None
) -> ShownFrame | None:
    """Return the image that ``ref`` names, else the keyframe nearest to the moment.

    ``k7`` names a keyframe, ``f7`` a frame that a strategy kept. None if there is no such image or
    video, or no keyframe near. With ``as_of_ms`` only frames
    count that a question as of then may see.
    """
    named = _IMAGE.fullmatch(ref)
    kind = named[1] if named else "k"
    with store.begin() as session:
        last = _last(session, video, as_of_ms)
        frame: BuiltFrame | StoredKeyframe | None
        if named:
            find = kept_frame if kind == "f" else frame_of
            frame = find(session, video, int(named[2]))
        else:
            clip = clip_at(session, video, at_ms)
            around = [] if clip is None else [clip - 1, clip, clip + 1]
            visible = [number for number in around if number <= last]
            frame = frame_near(session, video, at_ms, visible)
            if frame is not None and abs(frame.time_ms - at_ms) > NEAR_MS:
                frame = None
    if frame is None or frame.clip > last:
        return None
    span = TimeSpan.of(frame.time_ms, frame.time_ms)
    return ShownFrame(ref=f"{kind}{frame.id}", blob=frame.blob, span=span)


def frames_around(store: Store, video: str, at_ms: int, most: int = 6) -> list[StoredKeyframe]:
    """Return the ``most`` keyframes nearest to a moment, in order of time, with known names."""
    with store.begin() as session:
        clip = clip_at(session, video, at_ms)
        frames = [] if clip is None else frames_of(session, video, [clip - 1, clip, clip + 1])
        near = [frame for frame in frames if abs(frame.time_ms - at_ms) <= NEAR_MS]
        nearest = sorted(near, key=lambda frame: (abs(frame.time_ms - at_ms), frame.time_ms))[:most]
        people = _people_described(session, video, nearest)
    ordered = sorted(nearest, key=lambda frame: (frame.time_ms, frame.id))
    return [replace(one, description=people.display(one.description or "")) for one in ordered]


def _people_described(session: Session, video: str, frames: Sequence[StoredKeyframe]) -> ClipPeople:
    """Return the people of a video; nobody where no frame has a description to name them in."""
    if not any(frame.description for frame in frames):
        return ClipPeople()
    last = memory_view(session, [video]).scopes[0].last_clip
    known = characters_at(session, video, last)
    return ClipPeople(characters=tuple(one.character for one in known))


def _last(session: Session, video: str, as_of_ms: int | None) -> float:
    """Return the last clip that may be seen; -1 if none may."""
    if as_of_ms is None:
        return math.inf
    with suppress(NotFound):
        return memory_view(session, [video], as_of_ms).scopes[0].last_clip
    return -1
