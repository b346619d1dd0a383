"""Decodes a source into clips in one pass: exact times, one clip in memory, its sound beside."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np

from domain.errors import MediaError
from domain.media import Clip
from domain.time import TimeSpan
from perception.containers import read_packets
from perception.cut_file import open_before, sound_of
from perception.frames import FrameSplitter, shrink
from perception.picture_stream import read_pictures
from perception.quality import FrameMeasurer
from perception.source import SourceInfo, clips_of, probe

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image, Samples
    from perception.frames import Frame
    from perception.parts import Part


LOOKAHEAD = 6
"""How much sound after a clip is read with it, by its length through this: 5 s after 30. Speech is
recognised up to a rest in there."""
# Each clip's sound is decoded by a decoder of its own that begins a second early. Audio decoders
# carry state from packet to packet (overlaps, noise generators), so only this gives the same
# samples for clip k wherever reading began; it costs a few milliseconds a clip.
_PREROLL_MS = 1_000
_POSTROLL_MS = 100
_MAX_JUMP_S = 0.05
_MIN_GAP_S = 0.2
_CANCELLED = 0.3
"""Loudness of the mix, as a part of the louder side's, below which both cancel each other out."""
_RESAMPLER_OPTIONS = {"rematrix_maxval": "1"}
"""Mixing channels down averages them, and so does not clip."""


class ClipAudio:
    """Collects the audio of one clip from decoded frames.

    ``gaps`` are stretches whose packets would not decode. ``following`` is the sound of the first
    seconds after the clip, where somebody has read it. At ``seams``, in milliseconds from the
    clip's start, another recording begins.
    """

    def __init__(self, clip: Clip, hz: int) -> None:
        self._clip, self.hz = clip, hz
        self._sides = np.zeros((2, clip.span.length_ms * hz // 1000), np.float32)
        self.following: Samples = self._sides[0, :0]
        self.seams: tuple[int, ...] = ()
        self.has_samples = False
        self.damaged = False
        self.gaps: list[TimeSpan] = []
        self._resampler: av.AudioResampler | None = None
        self._format: tuple[int, str, str] | None = None
        self._position = 0
        self._next_s: float | None = None

    @property
    def samples(self) -> Samples:
        """Return both sides mixed to one, shape (N,).

        Where one is the other turned upside down, as a wrongly wired cable makes it, the mix is
        silence: there the louder side is taken. Each second is looked at by itself, so that a
        clip's sound does not depend on how much of it was read.
        """
        mixed = self._sides.mean(axis=0)
        for start in range(0, len(mixed), self.hz):
            second = slice(start, start + self.hz)
            power = np.square(self._sides[:, second]).sum(axis=1)
            if np.square(mixed[second]).sum() < _CANCELLED**2 * power.max():
                mixed[second] = self._sides[power.argmax(), second]
        return np.asarray(mixed, np.float32)

    def add(self, frame: av.AudioFrame, start_s: float | None) -> bool:
        """Add a decoded frame by its video time in seconds; return False once the clip is full.

        One without a time goes on from the one before.
        """
        start = start_s if start_s is not None else self._next_s or 0.0
        jumped = self._next_s is None or abs(start - self._next_s) > _MAX_JUMP_S
        if self._next_s is not None and jumped:
            # Note what did not decode; where there is no sound, a recording may just be silent.
            span = self._clip.span
            start_ms = max(span.start_ms, round(self._next_s * 1000))
            end_ms = min(span.end_ms, round(start * 1000))
            if self.damaged and start - self._next_s > _MIN_GAP_S and (start_ms < end_ms):
                self.gaps.append(TimeSpan.of(start_ms, end_ms))
        if start * 1000 >= self._clip.span.end_ms + _POSTROLL_MS:
            return False
        audio_format = (frame.sample_rate, frame.layout.name, frame.format.name)
        if self._resampler is None or jumped or audio_format != self._format:
            # Start a resampler for audio that is continuous from ``start`` seconds on.
            self.finish()
            self._format = audio_format
            self._position = round((start - self._clip.span.start_ms / 1000) * self.hz)
            layout = "mono" if audio_format[1] == "mono" else "stereo"
            self._resampler = av.AudioResampler(
                format="fltp", layout=layout, rate=self.hz, options=_RESAMPLER_OPTIONS
            )
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

    def _write(self, frames: list[av.AudioFrame]) -> None:
        for frame in frames:
            values = frame.to_ndarray()
            start, end = self._position, self._position + values.shape[1]
            self._position = end
            low, high = max(0, start), min(self._sides.shape[1], end)
            if high > low:
                self._sides[:, low:high] = np.clip(values[:, low - start : high - start], -1, 1)
                self.has_samples = True


def lookahead_ms(settings: WatchSettings) -> int:
    """Return how much sound after a clip is read with it, in milliseconds."""
    return settings.clip_ms // LOOKAHEAD


def read_audio(
    path: Path, info: SourceInfo, clip: Clip, settings: WatchSettings
) -> ClipAudio | None:
    """Decode the audio of ``clip`` and of what follows; None where the source has no audio."""
    if not info.has_audio:
        return None
    hz, ahead_ms, end = settings.audio_hz, lookahead_ms(settings), clip.span.end_ms
    audio = decode_audio(path, info, clip, hz)
    until = min(end + ahead_ms + _POSTROLL_MS, info.duration_ms)
    if end < until:
        # By a decoder that begins where the next clip's does, so that its samples are the same.
        ahead = Clip(index=clip.index + 1, span=TimeSpan.of(end, until))
        audio.following = decode_audio(path, info, ahead, hz).samples[: ahead_ms * hz // 1000]
    begins = (part.span.start_ms - clip.span.start_ms for part in info.parts[1:])
    audio.seams = tuple(ms for ms in begins if 0 < ms < clip.span.length_ms + ahead_ms)
    return audio


def decode_audio(path: Path, info: SourceInfo, clip: Clip, hz: int) -> ClipAudio:
    """Decode the audio of ``clip``: exactly its length in samples, silence where there is none."""
    audio, end = ClipAudio(clip, hz), clip.span.end_ms + _POSTROLL_MS
    from_ms = max(0, clip.span.start_ms - _PREROLL_MS)
    for part in info.parts_within(from_ms, end):
        for frame, start_s in _frames(path, info, part, from_ms, audio):
            if not audio.add(frame, start_s):
                break
    audio.finish()
    return audio


def _frames(
    path: Path, info: SourceInfo, part: Part, from_ms: int, audio: ClipAudio
) -> Iterator[tuple[av.AudioFrame, float | None]]:
    """Yield the frames of a part from a time on, each with its time in seconds if it has one."""
    begin, end = part.span.start_ms / 1000 - 1, part.span.end_ms / 1000
    with open_before(path, info, part, "audio", max(from_ms, part.span.start_ms)) as container:
        stream, _ = sound_of(container, info)
        for packet in read_packets(container, [stream]):
            try:
                frames = stream.codec_context.decode(packet)
            except av.FFmpegError:
                audio.damaged = True
                continue
            for frame in frames:
                start = None
                if frame.pts is not None and frame.time_base is not None:
                    start = float(frame.pts * frame.time_base - part.origin)
                last = part is info.parts[-1] and not part.is_within
                if start is None or last or begin <= start < end:
                    yield frame, start
                elif start >= end and not part.is_within:
                    return


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
