"""Cuts a span out of a media file into an MP4 of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import av
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from domain.errors import InputError, MediaError
from domain.time import TimeSpan, format_clock
from perception.containers import (
    Packet,
    audio_stream,
    demux,
    open_media,
    read_packets,
    video_stream,
)
from perception.frames import AS_STORED, is_hdr, to_sdr
from perception.recording import COPIED, StreamCopy
from perception.source import probe

if TYPE_CHECKING:
    from av.container import InputContainer, OutputContainer

    from perception.parts import Part
    from perception.source import SourceInfo


EARLIER_MS = 1_000
"""A copied span begins at a key picture, at most so much before what was asked for."""
CLOCK = Fraction(1, 90_000)
"""Time base of encoded pictures, in seconds: fine enough for any frame rate."""
FAST_START = {"movflags": "+faststart"}
QUALITY = {"preset": "veryfast", "crf": "20"}
PLAYED = frozenset({"h264", "aac", "mp3"})
"""Codecs that any browser plays in MP4."""
PREVIEW_EARLIER_MS, PREVIEW_HEIGHT = 10_000, 480
PREVIEW_QUALITY = {"preset": "ultrafast", "crf": "26"}
"""A preview is made while somebody waits for it."""


@dataclass(frozen=True)
class CutFile:
    """What was cut out: its span, and whether it was copied instead of encoded anew."""

    span: TimeSpan
    copied: bool


def join_parts(parts: Sequence[tuple[Path, TimeSpan]], out: Path) -> None:
    """Write spans of files, one after the other, to ``out`` as MP4; they are encoded anew.

    Args:
        parts: in milliseconds of a file's time, of files with the same kinds of streams and
            pictures of one size.

    Raises:
        MediaError: a file cannot be read, or nothing decodes in a span.
    """
    try:
        with av.open(str(out), "w", format="mp4", options=FAST_START) as target:
            encoder = SpanEncoder(target)
            for path, span in parts:
                encoder.add(path, probe(path), span)
            encoder.end()
    except av.FFmpegError as error:
        raise MediaError(f"{parts[0][0]}: cannot be cut ({error.strerror})") from error


def cut_file(
    path: Path, span: TimeSpan, out: Path, track: int | None = None, *, preview: bool = False
) -> CutFile:
    """Write a span of a media file to ``out`` as MP4, with its sound.

    Packets are copied where the codecs fit into MP4 and a key picture begins shortly before the
    span; else pictures and sound are encoded anew, from the start of the span on.

    Args:
        span: in milliseconds of video time; what lies after the end of the file is left out.
        track: the number of the track of sound, from 1; None: the main one.
        preview: small and soon, to look at: it may begin up to 10 s earlier, at a key picture.

    Raises:
        InputError: the file ends before the span, or has no such track.
        MediaError: the file cannot be read, or nothing decodes in the span.
    """
    info = probe(path, track)
    if span.start_ms >= info.duration_ms:
        start, end = format_clock(span.start_ms), format_clock(info.duration_ms)
        raise InputError(f"{start} is after {end}, the end of the video")
    within = TimeSpan.of(span.start_ms, min(span.end_ms, info.duration_ms))
    earlier_ms = PREVIEW_EARLIER_MS if preview else EARLIER_MS
    with open_media(path) as container:
        copied = all(_fits(one, preview=preview) for one in _streams(container, info))
    key_ms = None
    if copied and len(info.parts) == 1:
        if not info.has_video:
            key_ms = within.start_ms
        else:
            with closing(KeyPictureFinder(path, info)) as finder:
                found = finder.before(within.start_ms)
            key_ms = found if within.start_ms - found <= earlier_ms else None
    try:
        with av.open(str(out), "w", format="mp4", options=FAST_START) as target:
            if key_ms is None:
                encoder = SpanEncoder(target, preview=preview)
                encoder.add(path, info, within)
                encoder.end()
            else:
                within = TimeSpan.of(key_ms, within.end_ms)
                # Times of pictures are rounded up to whole milliseconds.
                _copy(path, info, TimeSpan.of(max(0, key_ms - 1), within.end_ms), target)
    except av.FFmpegError as error:
        raise MediaError(f"{path}: {within} cannot be cut out ({error.strerror})") from error
    return CutFile(within, copied=key_ms is not None)


def _fits(stream: VideoStream | AudioStream, *, preview: bool) -> bool:
    """Check whether a stream can be copied into MP4, for a preview so that browsers play it."""
    codec = stream.codec_context.codec.canonical_name
    if not preview:
        return codec in COPIED
    return codec in PLAYED and getattr(stream, "pix_fmt", "yuv420p") == "yuv420p"


def _streams(container: InputContainer, info: SourceInfo) -> list[VideoStream | AudioStream]:
    found = (video_stream(container), audio_stream(container, info.audio_index))
    return [one for one in found if one is not None]


def _open(path: Path, info: SourceInfo, part: Part, start_ms: int) -> InputContainer:
    return open_before(path, info, part, "video" if info.has_video else "audio", start_ms)


def _bounds(packet: Packet, part: Part, span: TimeSpan) -> tuple[int, int]:
    """Return where a span begins and ends, in the time base of a packet."""
    times = (part.origin + Fraction(ms, 1000) for ms in (span.start_ms, span.end_ms))
    begin, end = (int(time / packet.time_base) for time in times)
    return begin, end


def _copy(path: Path, info: SourceInfo, span: TimeSpan, target: OutputContainer) -> None:
    (part,) = info.parts
    with closing(_open(path, info, part, span.start_ms)) as container:
        streams = _streams(container, info)
        copies = {one.index: StreamCopy(one, target) for one in streams}
        waiting = set(copies)
        for packet in demux(container, streams):
            index = packet.stream.index
            if packet.dts is None or index not in waiting:
                continue
            begin, end = _bounds(packet, part, span)
            # Pictures that are decoded before the end may be shown after it: others need them.
            if packet.dts >= end:
                waiting.remove(index)
                if not waiting:
                    return
            elif packet.pts is not None and packet.pts >= begin:
                packet.pts, packet.dts = packet.pts - begin, packet.dts - begin
                copies[index].add(packet)


class SpanEncoder:
    """Encodes spans of files anew, one after the other, into an MP4.

    Args:
        target: the MP4; it gets the streams of the first file.
    """

    def __init__(self, target: OutputContainer, *, preview: bool = False) -> None:
        self._target, self._preview = target, preview
        self._encoders: dict[str, PictureEncoder | SoundEncoder] = {}
        self._length_ms = 0

    def add(self, path: Path, info: SourceInfo, span: TimeSpan) -> None:
        """Add the pictures and the sound of a span, in milliseconds of the file's time.

        Raises:
            MediaError: nothing decodes in it.
        """
        found = False
        for part in info.parts_within(span.start_ms, span.end_ms):
            start = max(span.start_ms, part.span.start_ms)
            until = min(span.end_ms, part.span.end_ms)
            found |= self._add(path, info, part, TimeSpan.of(start, until), start - span.start_ms)
        if not found:
            raise MediaError(f"{path}: nothing decodes in {span}")
        self._length_ms += span.length_ms

    def _add(self, path: Path, info: SourceInfo, part: Part, span: TimeSpan, at_ms: int) -> bool:
        """Add what a part has of a span, so long after the span's start; tell if it has any."""
        found = False
        # The sound of a time may lie before its pictures in the file.
        early = max(part.span.start_ms, span.start_ms - EARLIER_MS)
        with closing(_open(path, info, part, early)) as container:
            streams = _streams(container, info)
            if not self._encoders:
                self._encoders = {
                    one.type: PictureEncoder(info, self._target, preview=self._preview)
                    if one.type == "video"
                    else SoundEncoder(one, self._target)
                    for one in streams
                }
            waiting = {one.index for one in streams if one.type in self._encoders}
            shift = Fraction(self._length_ms + at_ms, 1000)
            for packet in demux(container, streams):
                index = packet.stream.index
                begin, end = _bounds(packet, part, span)
                for frame in _decoded(packet) if index in waiting else ():
                    if frame.pts is None or frame.pts < begin:
                        continue
                    if frame.pts >= end:
                        waiting.discard(index)
                        break
                    frame.pts += int(shift / frame.time_base) - begin
                    self._target.mux(self._encoders[packet.stream.type].encode(frame))
                    found = True
                if not waiting:
                    break
        return found

    def end(self) -> None:
        """Write what the encoders still hold."""
        for encoder in self._encoders.values():
            self._target.mux(encoder.encode(None))


def _decoded(packet: Packet) -> Iterable[Any]:
    """Return the frames of a packet; none where it is damaged."""
    try:
        return packet.decode()
    except av.FFmpegError:
        return ()


class PictureEncoder:
    """Encodes pictures as H.264, upright, of even size, in the shape that they are shown in."""

    def __init__(self, info: SourceInfo, target: OutputContainer, *, preview: bool) -> None:
        self._how = info.upright
        rate = Fraction(info.frame_rate or 25).limit_denominator(1_000)
        self._stream = target.add_stream("libx264", rate=rate)
        height = min(info.height, PREVIEW_HEIGHT) if preview else info.height
        width = info.width * height // info.height
        self._stream.width, self._stream.height = max(2, width & ~1), max(2, height & ~1)
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = dict(PREVIEW_QUALITY if preview else QUALITY)
        self._stream.codec_context.time_base = CLOCK
        self._stream.codec_context.sample_aspect_ratio = info.pixel_aspect

    def encode(self, frame: VideoFrame | None) -> list[Packet]:
        """Return the packets that a picture completes; after the last, None gives the rest."""
        if frame is None:
            return self._stream.encode(None)
        plain = to_sdr(frame, frame.width, frame.height) if is_hdr(frame) else frame
        if self._how != AS_STORED:
            plain = VideoFrame.from_ndarray(self._how.pixels(plain), format="rgb24")
            plain.pts, plain.time_base = frame.pts, frame.time_base
        return self._stream.encode(
            plain.reformat(self._stream.width, self._stream.height, "yuv420p")
        )


class SoundEncoder:
    """Encodes sound as AAC in stereo."""

    def __init__(self, source: AudioStream, target: OutputContainer) -> None:
        rate = source.codec_context.sample_rate
        self._stream = target.add_stream("aac", rate=min(rate, 48_000), layout="stereo")
        self._resampler = av.AudioResampler("fltp", "stereo", min(rate, 48_000))

    def encode(self, frame: AudioFrame | None) -> list[Packet]:
        """Return the packets that a piece completes; after the last, None gives the rest."""
        pieces = self._resampler.resample(frame)
        packets = [
            one for piece in pieces if piece is not None for one in self._stream.encode(piece)
        ]
        return packets + (self._stream.encode(None) if frame is None else [])


# Seeks in a part of a file so that decoding is exact from a given time on.


Kind = Literal["video", "audio"]
StreamT = TypeVar("StreamT", VideoStream, AudioStream)
_MARGINS_MS = (0, 1_000, 4_000, 16_000, 64_000)


def open_before(path: Path, info: SourceInfo, part: Part, kind: Kind, ms: int) -> InputContainer:
    """Open a part of the source so that its next packets of a ``kind`` begin with a key packet.

    That packet's time is at or before ``ms``. Containers seek by decoding time, or to any packet,
    so the landing is checked and tried again from further back; the start of the part always does.
    """
    container = part.open(path)
    if ms <= 0:
        return container
    found = _seek_target(container, info, part, kind, ms)
    if found is not None:
        _seek(container, info, part, kind, found[0])
        return container
    container.close()
    return part.open(path)


def pictures_of(container: InputContainer) -> tuple[VideoStream, Fraction]:
    """Return the stream of pictures that probing found, with its time base in seconds.

    Raises:
        MediaError: it is not there any more.
    """
    return _present(video_stream(container), container)


def sound_of(container: InputContainer, info: SourceInfo) -> tuple[AudioStream, Fraction]:
    """Return the stream of sound that is heard, with its time base in seconds.

    Raises:
        MediaError: it is not there any more.
    """
    return _present(audio_stream(container, info.audio_index), container)


def _present(stream: StreamT | None, container: InputContainer) -> tuple[StreamT, Fraction]:
    if stream is None or stream.time_base is None:
        path = Path(container.name)
        raise MediaError(f"{path}: the file has changed since it was looked at; ingest it again")
    return stream, stream.time_base


class KeyPictureFinder:
    """Finds the key picture before a time in a file of one part, with one open file; close it.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """

    def __init__(self, path: Path, info: SourceInfo) -> None:
        self._path, self._info = path, info
        (self._part,) = info.parts
        self._container = self._part.open(path)
        pictures_of(self._container)

    def close(self) -> None:
        self._container.close()

    def before(self, ms: int) -> int:
        """Return the time of the key picture at or before ``ms``; ``ms`` if the first is later."""
        found = _seek_target(self._container, self._info, self._part, "video", ms)
        if found is not None:
            return found[1]
        self.close()
        self._container = self._part.open(self._path)
        stream, base = pictures_of(self._container)
        pts = _first_key_pts(read_packets(self._container, [stream]))
        return 0 if pts is None else min(ms, self._part.clock(base).ms(pts))


def _seek_target(
    container: InputContainer, info: SourceInfo, part: Part, kind: Kind, ms: int
) -> tuple[int, int] | None:
    """Return where to seek so that a key packet at or before ``ms`` comes first, and its time."""
    for margin in _MARGINS_MS:
        if ms - margin <= part.span.start_ms and (part.is_within or ms - margin <= 0):
            return None
        try:
            stream, base = _seek(container, info, part, kind, ms - margin)
            pts = _first_key_pts(demux(container, [stream]))
        except av.FFmpegError:
            continue
        if pts is not None and (key_time := part.clock(base).ms(pts)) <= ms:
            return ms - margin, key_time
    return None


def _first_key_pts(packets: Iterable[Packet]) -> int | None:
    return next((p.pts for p in packets if p.pts is not None and p.is_keyframe), None)


def _seek(
    container: InputContainer, info: SourceInfo, part: Part, kind: Kind, ms: int
) -> tuple[VideoStream | AudioStream, Fraction]:
    stream, base = pictures_of(container) if kind == "video" else sound_of(container, info)
    container.seek(int((part.origin + Fraction(ms, 1000)) / base), stream=stream)
    return stream, base
