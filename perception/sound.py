"""The sound of one clip: 16 kHz mono, placed by its time stamps.

Each clip is decoded by a decoder of its own that begins a second early. Audio decoders carry
state from packet to packet (overlaps, noise generators), so only this gives the same samples
for clip k wherever reading began; it costs a few milliseconds a clip.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np

from domain.time import TimeSpan
from perception.containers import packets_of, sound_stream
from perception.seeking import open_before

if TYPE_CHECKING:
    from domain.media import Clip
    from models.ports import Samples
    from perception.source import SourceInfo

_RUN_UP_MS = 1_000
_RUN_OUT_MS = 100
_JUMP_S = 0.05
_GAP_S = 0.2
_HOLE_S = 1.0
_NEVER_LOUDER = {"rematrix_maxval": "1"}
"""Mixing channels down averages them, and so does not clip."""


class Sound:
    """The samples of one clip, filled as frames arrive.

    ``gaps`` are stretches whose packets would not decode. ``holes`` are stretches of a second or
    more without any packet, though sound goes on after them: the recording paused, or a part of
    the file is lost.
    """

    def __init__(self, origin: Fraction, clip: Clip, hz: int) -> None:
        self._origin, self._clip, self._hz = origin, clip, hz
        self.samples: Samples = np.zeros(clip.span.length_ms * hz // 1000, np.float32)
        self.heard = False
        self.damaged = False
        self.gaps: list[TimeSpan] = []
        self.holes: list[TimeSpan] = []
        self._resampler: av.AudioResampler | None = None
        self._kind: tuple[int, str, str] | None = None
        self._place = 0
        self._next_s: float | None = None

    def add(self, frame: av.AudioFrame) -> bool:
        """Take a decoded frame; False once the clip is full."""
        start = self._start_of(frame)
        jumped = self._next_s is None or abs(start - self._next_s) > _JUMP_S
        if self._next_s is not None and jumped:
            self._note_missing(self._next_s, start)
        if start * 1000 >= self._clip.span.end_ms + _RUN_OUT_MS:
            return False
        kind = (frame.sample_rate, frame.layout.name, frame.format.name)
        if self._resampler is None or jumped or kind != self._kind:
            self._resampler = self._begin(start, kind)
        frame.pts = None
        try:
            self._write(self._resampler.resample(frame))
        except av.FFmpegError:
            # A damaged packet may decode to sound of a kind that there is not.
            self._resampler, self.damaged = None, True
            return True
        self._next_s = start + frame.samples / frame.sample_rate
        self.damaged = False
        return True

    def finish(self) -> None:
        """Write what the resampler still holds."""
        held, self._resampler = self._resampler, None
        if held is not None:
            with suppress(av.FFmpegError):
                self._write(held.resample(None))

    def _start_of(self, frame: av.AudioFrame) -> float:
        if frame.pts is None or frame.time_base is None:
            return self._next_s or 0.0
        return float(frame.pts * frame.time_base - self._origin)

    def _begin(self, start: float, kind: tuple[int, str, str]) -> av.AudioResampler:
        """Start a stretch of sound that is continuous from ``start`` seconds on."""
        self.finish()
        self._kind = kind
        self._place = round((start - self._clip.span.start_ms / 1000) * self._hz)
        return av.AudioResampler(format="flt", layout="mono", rate=self._hz, options=_NEVER_LOUDER)

    def _note_missing(self, start: float, end: float) -> None:
        span = self._clip.span
        start_ms = max(span.start_ms, round(start * 1000))
        end_ms = min(span.end_ms, round(end * 1000))
        if end_ms <= start_ms:
            return
        if self.damaged and end - start > _GAP_S:
            self.gaps.append(TimeSpan.of(start_ms, end_ms))
        elif end - start > _HOLE_S:
            self.holes.append(TimeSpan.of(start_ms, end_ms))

    def _write(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            values = frame.to_ndarray().reshape(-1)
            start, end = self._place, self._place + len(values)
            self._place = end
            low, high = max(0, start), min(len(self.samples), end)
            if high > low:
                self.samples[low:high] = np.clip(values[low - start : high - start], -1, 1)
                self.heard = True


def heard_in(path: Path, info: SourceInfo, clip: Clip, hz: int) -> Sound | None:
    """The sound of ``clip``; None where the source has none at all."""
    return hear(path, info, clip, hz) if info.has_audio else None


def hear(path: Path, info: SourceInfo, clip: Clip, hz: int) -> Sound:
    """Decode the sound of ``clip``: exactly its length of samples, silence where there is none."""
    sound = Sound(info.origin, clip, hz)
    for frame in _frames(path, info, max(0, clip.span.start_ms - _RUN_UP_MS), sound):
        if not sound.add(frame):
            break
    sound.finish()
    return sound


def _frames(path: Path, info: SourceInfo, from_ms: int, sound: Sound) -> Iterator[av.AudioFrame]:
    with open_before(path, info, "audio", from_ms) as container:
        stream, _ = sound_stream(container, path)
        for packet in packets_of(container, stream):
            try:
                yield from stream.codec_context.decode(packet)
            except av.FFmpegError:
                sound.damaged = True
