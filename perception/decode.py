"""A source as clips of pictures and sound: one decoding pass, exact times, one clip in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Clip
from domain.time import TimeSpan
from models.onnx import threads_allowed
from perception.lanes import Stopped, in_lanes
from perception.measuring import Measurer
from perception.pictures import Pictures, Shown
from perception.sampling import Grid
from perception.seeking import lead_ms
from perception.sound import Sound, hear
from perception.source import clips_of

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings
    from models.ports import Samples
    from perception.frames import Frame
    from perception.source import SourceInfo


_STILL_MS = 1_000
LANES = 2
"""Clips decoded at a time, each of which may take as much memory as the one that is waited for."""
_MOST_LEAD = 1 / 3
"""Clips are decoded by themselves where what is decoded in vain before them is no longer, as a
part of a clip's length."""


@dataclass(frozen=True, eq=False)
class RawClip:
    """One decoded clip.

    ``frames`` are the distinct pictures shown at the sample instants, in order; a picture that
    stands still over several instants comes once. ``samples`` are the clip's length at 16 kHz,
    or empty where the source has no sound. In ``gaps`` pictures or sound did not decode.
    ``error`` says why nothing at all of the clip could be decoded.
    """

    clip: Clip
    frames: list[Frame]
    samples: Samples
    gaps: tuple[TimeSpan, ...] = ()
    error: str | None = None


def read_clips(
    path: Path, info: SourceInfo, settings: WatchSettings, first_clip: int = 0
) -> Generator[RawClip]:
    """Decode clip after clip from ``first_clip`` on; a clip is the same wherever reading began.

    Where the file has key pictures often enough, the next clip is decoded beside the one that is
    waited for, each in one thread.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    clips = deque(clips_of(info.duration_ms, settings)[first_clip:])
    yield from _beside(path, info, settings, clips)
    yield from _in_turn(path, info, settings, clips)


def _beside(
    path: Path, info: SourceInfo, settings: WatchSettings, clips: deque[Clip]
) -> Iterator[RawClip]:
    """Takes clips off as long as it pays to decode each from the key picture before it."""
    lanes, most_ms = min(LANES, threads_allowed()), _MOST_LEAD * settings.clip_ms
    if lanes < 2 or len(clips) < 2 or not info.has_video:
        return
    if lead_ms(path, info, clips[1].span.start_ms) > most_ms:
        return
    work = partial(_alone, path, info, settings)
    with closing(in_lanes(work, tuple(clips), lanes)) as read:
        for raw, lead in read:
            clips.popleft()
            yield raw
            if lead > most_ms:
                return


def _alone(
    path: Path, info: SourceInfo, settings: WatchSettings, clip: Clip, stopped: Stopped
) -> tuple[RawClip, int]:
    """A clip decoded by itself, and how long before it that had to begin, in milliseconds."""
    pictures = Pictures(path, info, settings, clip.span.start_ms, alone=True)
    measurer = Measurer(info.rotation, settings, beside=False)
    with closing(pictures), closing(measurer):
        views = _Views(takewhile(lambda _: not stopped(), pictures), measurer, settings)
        sound = hear(path, info, clip, settings.audio_hz) if info.has_audio else None
        return _assemble(clip, views.of(clip), sound), pictures.lead_ms


def _in_turn(
    path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
) -> Iterator[RawClip]:
    if not clips:
        return
    pictures = Pictures(path, info, settings, clips[0].span.start_ms) if info.has_video else None
    measurer = Measurer(info.rotation, settings)
    try:
        views = _Views(pictures or (), measurer, settings)
        for clip in clips:
            sound = hear(path, info, clip, settings.audio_hz) if info.has_audio else None
            yield _assemble(clip, views.of(clip), sound)
    finally:
        measurer.close()
        if pictures is not None:
            pictures.close()


def _assemble(clip: Clip, view: _View, sound: Sound | None) -> RawClip:
    heard = sound is not None and sound.heard
    # A picture that stands still while sound is missing too: that part of the file is lost.
    lost = shared_spans(view.still, sound.holes if sound else [])
    frames = [f for f in view.frames if not any(s.start_ms <= f.time_ms < s.end_ms for s in lost)]
    return RawClip(
        clip=clip,
        frames=frames,
        samples=sound.samples if sound else np.zeros(0, np.float32),
        gaps=merge_spans([*view.dark, *lost, *(sound.gaps if sound else [])]),
        error=None if frames or heard else "nothing between here and the clip's end decodes",
    )


@dataclass(frozen=True, eq=False)
class _View:
    """The pictures of one clip: frames, instants that did not decode, and long stills."""

    frames: list[Frame]
    dark: list[TimeSpan]
    still: list[TimeSpan]


class _Views:
    """Cuts the stream of what is shown into clips."""

    def __init__(self, shown: Iterable[Shown], measurer: Measurer, settings: WatchSettings) -> None:
        self._shown = iter(shown)
        self._measurer = measurer
        self._grid = Grid.of(settings)

    def of(self, clip: Clip) -> _View:
        """The view of the next clip."""
        dark, still = [], []
        last: av.VideoFrame | None = None
        for shown in self._within(clip):
            if shown.picture is None:
                dark.append(self._gap(shown, clip))
            elif shown.picture is not last:
                self._measurer.take(shown.picture, max(shown.time_ms, clip.span.start_ms))
            if shown.instant_ms - shown.time_ms >= _STILL_MS:
                still.append(self._gap(shown, clip))
            last = shown.picture
        return _View(self._measurer.frames(), dark, still)

    def _within(self, clip: Clip) -> Iterator[Shown]:
        for shown in self._shown:
            if shown.instant_ms >= clip.span.end_ms:
                self._shown = chain([shown], self._shown)
                return
            yield shown

    def _gap(self, shown: Shown, clip: Clip) -> TimeSpan:
        end = self._grid.at_or_after(shown.instant_ms + 1)
        return TimeSpan.of(shown.instant_ms, min(end, clip.span.end_ms))


def merge_spans(spans: Iterable[TimeSpan]) -> tuple[TimeSpan, ...]:
    """The same time as disjoint spans in order."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda s: (s.start_ms, s.end_ms)):
        if merged and span.start_ms <= merged[-1].end_ms:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return tuple(merged)


def shared_spans(some: Iterable[TimeSpan], others: Sequence[TimeSpan]) -> list[TimeSpan]:
    """The time that is in both."""
    pairs = ((a, b) for a in some for b in others if a.overlap_ms(b))
    return [TimeSpan.of(max(a.start_ms, b.start_ms), min(a.end_ms, b.end_ms)) for a, b in pairs]
