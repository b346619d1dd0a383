"""Decodes a source into clips in one pass: exact times, one clip in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from domain.errors import MediaError
from domain.media import Clip
from domain.time import TimeSpan
from perception.audio import ClipAudio, read_audio
from perception.frames import FrameSplitter, shrink
from perception.picture_stream import read_pictures
from perception.quality import FrameMeasurer
from perception.source import SourceInfo, clips_of, probe

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image, Samples
    from perception.frames import Frame

NO_SOUND: Samples = np.zeros(0, np.float32)


@dataclass(frozen=True, eq=False)
class RawClip:
    """One decoded clip.

    ``frames`` are the distinct pictures shown at the sample instants, in order; a picture that
    stands still over several instants comes once. ``samples`` are the clip's length at 16 kHz,
    or empty where the source has no sound; ``following`` are those of a few seconds right after
    it. What was said before ``heard_from_ms``, counted from the clip's start, is recognised with
    the clip before it; None: up to a rest, as for each clip of a file. At ``seams``, counted from
    there too, another recording begins. In ``gaps`` pictures or sound did not decode. ``error``
    says why nothing at all of the clip could be decoded.
    """

    clip: Clip
    frames: list[Frame]
    samples: Samples
    gaps: tuple[TimeSpan, ...] = ()
    error: str | None = None
    following: Samples = field(default_factory=lambda: NO_SOUND)
    heard_from_ms: int | None = None
    seams: tuple[int, ...] = ()


def read_clips(
    path: Path, info: SourceInfo, settings: WatchSettings, first_clip: int = 0
) -> Generator[RawClip]:
    """Decode clip after clip from ``first_clip`` on; a clip is the same wherever decoding began.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    clips = clips_of(info.duration_ms, settings)[first_clip:]
    if not clips:
        return
    start = clips[0].span.start_ms
    pictures = read_pictures(path, info, settings, start) if info.has_video else None
    measurer = FrameMeasurer(info.upright, settings)
    try:
        splitter = FrameSplitter(pictures or (), measurer, settings)
        for clip in clips:
            audio = read_audio(path, info, clip, settings)
            frames, undecoded = splitter.read(clip)
            yield _raw_clip(clip, frames, undecoded, audio)
    finally:
        measurer.close()
        if pictures is not None:
            pictures.close()


def read_sound(path: Path, info: SourceInfo, clip: Clip, settings: WatchSettings) -> RawClip:
    """Decode the sound of one clip and what follows, without its pictures.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    return _raw_clip(clip, [], [], read_audio(path, info, clip, settings))


def _raw_clip(
    clip: Clip, frames: list[Frame], undecoded: list[TimeSpan], audio: ClipAudio | None
) -> RawClip:
    has_audio = audio is not None and audio.has_samples
    return RawClip(
        clip=clip,
        frames=frames,
        samples=audio.samples if audio else NO_SOUND,
        gaps=merge_spans([*undecoded, *(audio.gaps if audio else [])]),
        error=None if frames or has_audio else "nothing between here and the clip's end decodes",
        following=audio.following if audio else NO_SOUND,
        seams=audio.seams if audio else (),
    )


def merge_spans(spans: Iterable[TimeSpan]) -> tuple[TimeSpan, ...]:
    """Merge spans that touch or overlap into disjoint spans, in order."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda s: (s.start_ms, s.end_ms)):
        if merged and span.start_ms <= merged[-1].end_ms:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return tuple(merged)


def intersect_spans(first: Iterable[TimeSpan], second: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Return the spans of time that both sequences cover."""
    pairs = ((a, b) for a in first for b in second if a.overlap_ms(b))
    return [TimeSpan.of(max(a.start_ms, b.start_ms), min(a.end_ms, b.end_ms)) for a, b in pairs]


# Decodes the clips of a file on demand: in order in one pass, else from where they start.

DecodeFrom = Callable[["Path", "SourceInfo", "WatchSettings", int], Iterator["RawClip"]]


class ClipReader:
    """Decodes clips of one file, and holds none of them; not to be shared between threads.

    Args:
        decode_from: decodes clip after clip from the one given on.
    """

    def __init__(
        self, path: Path, info: SourceInfo, settings: WatchSettings, decode_from: DecodeFrom
    ) -> None:
        self.source = path, info, settings
        self._decode_from = decode_from
        self._clips: Iterator[RawClip] | None = None
        self._next: int | None = None

    def clip(self, index: int) -> RawClip:
        """Return the decoded clip; decoding continues where it was, or starts there.

        Raises:
            MediaError: the file went away or is no longer what was probed.
        """
        if self._clips is None or index != self._next:
            self._clips = self._decode_from(*self.source, index)
        self._next = None
        found = next(self._clips, None)
        if found is None or found.clip.index != index:
            raise MediaError(f"clip {index} of {self.source[0]} cannot be read: has it changed?")
        self._next = index + 1
        return found


# Decodes single frames of a file at given times, for a question about a moment.

SAMPLES_AHEAD = 3
"""Sample instants within which a frame is looked for after the time that is asked for."""


def decode_frames(
    path: Path, settings: WatchSettings, times_ms: Sequence[int]
) -> list[tuple[int, Image]]:
    """Decode the frames that a file shows at some times.

    Args:
        settings: the sampling rate and the size that frames are shrunk to.
        times_ms: in milliseconds of video time.

    Returns:
        The time asked for and the picture (H x W x 3, RGB, upright) of each that decodes.

    Raises:
        MediaError: the file cannot be read, or has no pictures.
    """
    info = probe(path)
    if not info.has_video:
        raise MediaError(f"{path}: has no pictures")
    found = ((time, _frame(path, info, settings, time)) for time in times_ms)
    return [(time, image) for time, image in found if image is not None]


def _frame(path: Path, info: SourceInfo, settings: WatchSettings, time_ms: int) -> Image | None:
    """Return the picture that is shown at a time; None if none decodes there."""
    ahead = int(SAMPLES_AHEAD * 1000 / settings.sample_fps)
    start = max(0, min(time_ms, info.duration_ms - ahead))
    reader = read_pictures(path, info, settings, start, start + ahead, single_threaded=True)
    with closing(reader):
        shown = (one.picture for one in reader if one.picture is not None)
        picture = next(shown, None)
        if picture is None:
            return None
        return info.upright.pixels(shrink(picture, info.upright, settings.frame_height))
