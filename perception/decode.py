"""Decodes a source into clips in one pass: exact times, one clip in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Clip
from domain.time import TimeSpan
from perception.audio import ClipAudio, read_audio
from perception.clip_frames import ClipFrames, FrameSplitter
from perception.frame_metrics import FrameMeasurer
from perception.parallel_decode import read_parallel
from perception.picture_stream import PictureReader
from perception.source import clips_of

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Samples
    from perception.frames import Frame
    from perception.source import SourceInfo


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
    """Decode clip after clip from ``first_clip`` on; a clip is the same wherever decoding began.

    Where the file has key pictures often enough, stretches are decoded beside each other, each in
    one thread, about a clip ahead of the one that was taken.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    clips = clips_of(info.duration_ms, settings)[first_clip:]
    read = 0
    with closing(read_parallel(path, info, settings, clips)) as parallel:
        for raw in starmap(_raw_clip, parallel):
            yield raw
            # Its frames would be held beside those of the next clip otherwise.
            del raw
            read += 1
    yield from _read_sequentially(path, info, settings, clips[read:])


def _read_sequentially(
    path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
) -> Iterator[RawClip]:
    if not clips:
        return
    pictures = (
        PictureReader(path, info, settings, clips[0].span.start_ms) if info.has_video else None
    )
    measurer = FrameMeasurer(info.rotation, settings)
    try:
        splitter = FrameSplitter(pictures or (), measurer, settings)
        for clip in clips:
            audio = read_audio(path, info, clip, settings.audio_hz)
            yield _raw_clip(clip, splitter.read(clip), audio)
    finally:
        measurer.close()
        if pictures is not None:
            pictures.close()


def _raw_clip(clip: Clip, pictures: ClipFrames, audio: ClipAudio | None) -> RawClip:
    has_audio = audio is not None and audio.has_samples
    # A picture that stands still while sound is missing too: that part of the file is lost.
    lost = intersect_spans(pictures.static, audio.missing if audio else [])
    measured = pictures.measured.frames
    frames = [f for f in measured if not any(s.start_ms <= f.time_ms < s.end_ms for s in lost)]
    return RawClip(
        clip=clip,
        frames=frames,
        samples=audio.samples if audio else np.zeros(0, np.float32),
        gaps=merge_spans([*pictures.undecoded, *lost, *(audio.gaps if audio else [])]),
        error=None if frames or has_audio else "nothing between here and the clip's end decodes",
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
