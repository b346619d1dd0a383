"""Frames of a time that a question names: decoded from the video's file, else those stored nearest.

The file is used only where its content is still the video's, and nothing of the video was erased:
what somebody had forgotten or deleted must not come back from the file. Whoever may only look is
shown stored frames: what is decoded is stored, and would be seen by all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from domain.errors import InputError, MediaError
from domain.memories import Scope
from domain.settings import WatchSettings
from domain.time import TimeSpan, format_clock
from perception.decode import decode_frames
from perception.jpeg import Blobs
from perception.source import original_file
from store.database import Store
from store.queries.blobs import lock_blobs_shared
from store.queries.clips import KeyframeOnClip, StoredClip, clip_contents, clips_of
from store.queries.keyframes import StoredFrame, add_looked_frames
from store.queries.percepts import lock_video
from store.queries.rights import is_erased
from store.queries.videos import find_video

STEP_MS = 1_000
"""Decoded frames are at least so far apart."""
ERASED = "parts of the video were or may have been erased, so its file is not looked at"
AROUND_CLIPS = 2
"""So many clips before and after a time are looked through for stored images."""


@dataclass(frozen=True)
class Look:
    """The frames of a time, in order of time, and ``how`` they came to be, said plainly."""

    span: TimeSpan
    frames: tuple[KeyframeOnClip, ...]
    clips: tuple[int, ...]
    how: str

    def away_ms(self, frame: KeyframeOnClip) -> int:
        """Return how far a frame is from the time that was asked for; 0 within it."""
        before, after = self.span.start_ms - frame.time_ms, frame.time_ms - self.span.end_ms
        return max(0, before, after)

    def describe(self, frame: KeyframeOnClip) -> str:
        """Return what a frame is to the time that was asked for."""
        away = self.away_ms(frame)
        far = f", {away / 1000:.0f} s away" if away else ""
        return f"{self.how} at {format_clock(frame.time_ms)}{far}"


def look_at(store: Store, settings: WatchSettings, scope: Scope, span: TimeSpan, most: int) -> Look:
    """Return at most ``most`` frames of a time of a video.

    Args:
        store: has the video, and gets the frames that are decoded.
        settings: the size and quality of frames.
        scope: the video, up to the clip that may be seen.
        most: frames at most.

    Raises:
        InputError: nothing at that time is in view.
    """
    with store.begin() as session:
        clips = [one for one in clips_of(session, scope.video) if one.index <= scope.last_clip]
    end_ms = max((clip.span.end_ms for clip in clips), default=0)
    if span.start_ms >= end_ms:
        raise InputError(f"{format_clock(span.start_ms)} is after {format_clock(end_ms)}, the end")
    seen = TimeSpan.of(span.start_ms, max(span.start_ms + 1, min(span.end_ms, end_ms)))
    decoded, why = _decoded(store, settings, scope, seen, clips, most)
    around = AROUND_CLIPS * settings.clip_ms
    wide = TimeSpan.of(max(0, seen.start_ms - around), seen.end_ms + around)
    near = tuple(clip.index for clip in clips if clip.span.overlap_ms(wide))
    if decoded:
        return Look(seen, decoded, near, "decoded from the video's file")
    with store.begin() as session:
        frames = clip_contents(session, scope, near).frames
    look = Look(seen, (), (), "")
    nearest = sorted(frames, key=lambda one: (look.away_ms(one), one.time_ms, one.id))[:most]
    return Look(
        seen,
        tuple(sorted(nearest, key=lambda one: (one.time_ms, one.id))),
        near,
        f"stored image ({why})",
    )


def _decoded(
    store: Store,
    settings: WatchSettings,
    scope: Scope,
    span: TimeSpan,
    clips: list[StoredClip],
    most: int,
) -> tuple[tuple[KeyframeOnClip, ...], str]:
    """Return frames decoded from the file and stored; else none, and why."""
    if not store.may_change:
        return (), "the file is decoded only for who may change the library"
    with store.begin() as session:
        if is_erased(session, scope.video):
            return (), ERASED
        path = find_video(session, scope.video).path
    file = original_file(store.home, scope.video, path)
    if file is None:
        return (), "the video's file is gone or has changed"
    # Spread over the span, at least a second apart.
    count = min(most, max(1, span.length_ms // STEP_MS))
    edges = [span.start_ms + span.length_ms * n // count for n in range(count + 1)]
    times = [span.start_ms] if count == 1 else [(a + b) // 2 for a, b in pairwise(edges)]
    try:
        pictures = decode_frames(file, settings, times)
    except (MediaError, OSError):
        return (), "the video's file cannot be decoded there"
    frames, blobs = [], Blobs()
    for time, image in pictures:
        name = blobs.add(image, settings.jpeg_quality)
        height, width = image.shape[:2]
        clip = next(c.index for c in clips if c.span.start_ms <= time < c.span.end_ms)
        size = len(blobs[name])
        frames.append(StoredFrame(0, clip, time, 0.0, width, height, name, size))
    with store.begin() as session:
        lock_video(session, scope.video)
        if is_erased(session, scope.video):
            return (), ERASED
        lock_blobs_shared(session)
        for data in blobs.values():
            store.blobs.put(data)
        stored = add_looked_frames(session, scope.video, frames)
    return tuple(stored), "the video's file shows nothing there"
