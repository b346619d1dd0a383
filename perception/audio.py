"""Decodes the audio of one clip: 16 kHz mono, placed by its time stamps.

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
from perception.containers import read_packets, require_audio_stream
from perception.seeking import open_before

if TYPE_CHECKING:
    from domain.media import Clip
    from models.ports import Samples
    from perception.source import SourceInfo

_PREROLL_MS = 1_000
_POSTROLL_MS = 100
_MAX_JUMP_S = 0.05
_MIN_GAP_S = 0.2
_MIN_MISSING_S = 1.0
_RESAMPLER_OPTIONS = {"rematrix_maxval": "1"}
"""Mixing channels down averages them, and so does not clip."""


class ClipAudio:
    """Collects the audio of one clip from decoded frames.

    ``gaps`` are stretches whose packets would not decode. ``missing`` are stretches of a second or
    more without any packet, though sound goes on after them: the recording paused, or a part of
    the file is lost.
    """

    def __init__(self, origin: Fraction, clip: Clip, hz: int) -> None:
        self._origin, self._clip, self._hz = origin, clip, hz
        self.samples: Samples = np.zeros(clip.span.length_ms * hz // 1000, np.float32)
        self.has_samples = False
        self.damaged = False
        self.gaps: list[TimeSpan] = []
        self.missing: list[TimeSpan] = []
        self._resampler: av.AudioResampler | None = None
        self._format: tuple[int, str, str] | None = None
        self._position = 0
        self._next_s: float | None = None

    def add(self, frame: av.AudioFrame) -> bool:
        """Add a decoded frame; return False once the clip is full."""
        start = self._start_of(frame)
        jumped = self._next_s is None or abs(start - self._next_s) > _MAX_JUMP_S
        if self._next_s is not None and jumped:
            self._note_missing(self._next_s, start)
        if start * 1000 >= self._clip.span.end_ms + _POSTROLL_MS:
            return False
        audio_format = (frame.sample_rate, frame.layout.name, frame.format.name)
        if self._resampler is None or jumped or audio_format != self._format:
            self._resampler = self._start_resampler(start, audio_format)
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
        """Write the samples that the resampler still holds."""
        resampler, self._resampler = self._resampler, None
        if resampler is not None:
            with suppress(av.FFmpegError):
                self._write(resampler.resample(None))

    def _start_of(self, frame: av.AudioFrame) -> float:
        if frame.pts is None or frame.time_base is None:
            return self._next_s or 0.0
        return float(frame.pts * frame.time_base - self._origin)

    def _start_resampler(
        self, start: float, audio_format: tuple[int, str, str]
    ) -> av.AudioResampler:
        """Start a resampler for audio that is continuous from ``start`` seconds on."""
        self.finish()
        self._format = audio_format
        self._position = round((start - self._clip.span.start_ms / 1000) * self._hz)
        return av.AudioResampler(
            format="flt", layout="mono", rate=self._hz, options=_RESAMPLER_OPTIONS
        )

    def _note_missing(self, start: float, end: float) -> None:
        span = self._clip.span
        start_ms = max(span.start_ms, round(start * 1000))
        end_ms = min(span.end_ms, round(end * 1000))
        if end_ms <= start_ms:
            return
        if self.damaged and end - start > _MIN_GAP_S:
            self.gaps.append(TimeSpan.of(start_ms, end_ms))
        elif end - start > _MIN_MISSING_S:
            self.missing.append(TimeSpan.of(start_ms, end_ms))

    def _write(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            values = frame.to_ndarray().reshape(-1)
            start, end = self._position, self._position + len(values)
            self._position = end
            low, high = max(0, start), min(len(self.samples), end)
            if high > low:
                self.samples[low:high] = np.clip(values[low - start : high - start], -1, 1)
                self.has_samples = True


def read_audio(path: Path, info: SourceInfo, clip: Clip, hz: int) -> ClipAudio | None:
    """Decode the audio of ``clip``; None where the source has no audio stream."""
    return decode_audio(path, info, clip, hz) if info.has_audio else None


def decode_audio(path: Path, info: SourceInfo, clip: Clip, hz: int) -> ClipAudio:
    """Decode the audio of ``clip``: exactly its length in samples, silence where there is none."""
    audio = ClipAudio(info.origin, clip, hz)
    for frame in _frames(path, info, max(0, clip.span.start_ms - _PREROLL_MS), audio):
        if not audio.add(frame):
            break
    audio.finish()
    return audio


def _frames(
    path: Path, info: SourceInfo, from_ms: int, audio: ClipAudio
) -> Iterator[av.AudioFrame]:
    with open_before(path, info, "audio", from_ms) as container:
        stream, _ = require_audio_stream(container, path)
        for packet in read_packets(container, stream):
            try:
                yield from stream.codec_context.decode(packet)
            except av.FFmpegError:
                audio.damaged = True
