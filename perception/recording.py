"""Records a live source: the packets of each clip as they came, in an MP4 of its own."""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import av
from av.bitstream import BitStreamFilterContext

from perception.containers import audio_stream, video_stream

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer, OutputContainer
    from av.video.stream import VideoStream

    from domain.time import TimeSpan
    from perception.containers import Packet

COPIED = frozenset({"h264", "hevc", "av1", "mpeg4", "aac", "mp3"})
"""Codecs that every MP4 can hold: their packets are copied as they are."""
FRAGMENTED = {"movflags": "frag_keyframe+delay_moov+default_base_moof"}
"""Options of an MP4 that is written from its beginning to its end without going back."""
MOST_BYTES = 256 << 20
"""Of packets that are held; a source that sends more between two clips is not recorded there."""
JUMP_MS = 1_000
"""Time stamps that leap further back or ahead are of a new clock."""


@dataclass(frozen=True, eq=False)
class ClipRecording:
    """The recording of a clip: an MP4 that begins at ``start_ms`` of video time.

    That is at or before the clip's start where a key picture came by then, else within the clip.
    """

    mp4: bytes
    start_ms: int


@dataclass(frozen=True, eq=False)
class _Held:
    """A packet: ``base`` is its time base in seconds, ``at_ms`` when it is decoded."""

    stream: int
    data: bytes
    pts: int | None
    dts: int
    base: Fraction
    is_key: bool
    at_ms: int


class StreamRecorder:
    """Holds the packets of an open connection from the last key picture before its open clip on.

    When it is closed, the rest is written, since its streams say how packets are to be read.
    """

    def __init__(self) -> None:
        self._streams: dict[int, VideoStream | AudioStream] = {}
        self._video: int | None = None
        self._held: list[_Held] = []
        self._bytes = 0
        self._offset_ms: int | None = None
        self._taken_ms = 0
        self._rest: ClipRecording | None = None

    def connect(self, container: InputContainer) -> str:
        """Begin with a connection.

        Returns:
            Why it is not recorded, or not all of it; "" where all is.
        """
        video, audio = video_stream(container), audio_stream(container)
        if video is not None and _codec(video) not in COPIED:
            return f"it is not recorded: MP4 cannot hold {_codec(video)}"
        self._video = None if video is None else video.index
        found = [one for one in (video, audio) if one is not None]
        self._streams = {one.index: one for one in found if _codec(one) in COPIED}
        if audio is not None and audio.index not in self._streams:
            return f"its sound is not recorded: MP4 cannot hold {_codec(audio)}"
        return ""

    def disconnect(self) -> None:
        """Write what no clip has taken; must be called before the connection is closed."""
        self._rest = self._cut(self._taken_ms, None)
        self._streams, self._offset_ms = {}, None
        self._drop()

    def add(self, packet: Packet) -> None:
        index = packet.stream.index
        if index not in self._streams or packet.dts is None or not packet.size:
            return
        base = packet.time_base
        at_ms = int(packet.dts * base * 1000)
        if self._held and abs(at_ms - self._held[-1].at_ms) > JUMP_MS:
            self._drop()
        self._held.append(
            _Held(index, bytes(packet), packet.pts, packet.dts, base, packet.is_keyframe, at_ms)
        )
        self._bytes += packet.size
        if self._bytes > MOST_BYTES:
            self._drop()

    def place(self, media_ms: int, video_ms: int) -> None:
        """Set the video time of a time stamp of the connection, both in milliseconds."""
        self._offset_ms = video_ms - media_ms

    def take(self, span: TimeSpan) -> ClipRecording | None:
        """Return the recording of a clip, and drop what no later clip needs.

        Args:
            span: the clip's, in milliseconds of video time; clips are taken in order.

        Returns:
            None where nothing of it is held, or no key picture came.
        """
        recording, rest = self._cut(span.start_ms, span.end_ms), self._rest
        self._taken_ms, self._rest = span.end_ms, None
        if recording is None and rest is not None and rest.start_ms < span.end_ms:
            return rest
        return recording

    def _cut(self, start_ms: int, end_ms: int | None) -> ClipRecording | None:
        """Write a span of video time; ``end_ms`` None: all that is held."""
        if self._offset_ms is None:
            return None
        packets = self._held[self._start_before(start_ms - self._offset_ms) :]
        if end_ms is not None:
            end = end_ms - self._offset_ms
            packets = [one for one in packets if one.at_ms < end]
            self._held = self._held[self._start_before(end) :]
            self._bytes = sum(len(one.data) for one in self._held)
        if not packets:
            return None
        stamps = ((one.dts if one.pts is None else one.pts) * one.base for one in packets)
        target, zero = io.BytesIO(), Fraction(packets[0].at_ms, 1000)
        with av.open(target, "w", format="mp4", options=FRAGMENTED) as out:
            copies = {n: StreamCopy(one, out) for n, one in self._streams.items()}
            for held in packets:
                shift = int(zero / held.base)
                packet = av.Packet(held.data)
                packet.time_base, packet.is_keyframe = held.base, held.is_key
                packet.dts = held.dts - shift
                packet.pts = None if held.pts is None else held.pts - shift
                copies[held.stream].add(packet)
        return ClipRecording(target.getvalue(), int(1000 * min(stamps)) + self._offset_ms)

    def _drop(self) -> None:
        self._held, self._bytes = [], 0

    def _start_before(self, at_ms: int) -> int:
        """Return the place of the last packet by a time that a recording can begin with.

        The first such packet after that time where there is none before; the end without any.
        """
        starts = [
            n
            for n, one in enumerate(self._held)
            if self._video is None or (one.is_key and one.stream == self._video)
        ]
        before = [n for n in starts if self._held[n].at_ms <= at_ms]
        return before[-1] if before else next(iter(starts), len(self._held))


class StreamCopy:
    """A stream of an MP4 that packets are copied into.

    AAC of broadcasts and cameras has a header before each packet, which MP4 has once.

    Args:
        source: the stream that the packets are of, whose file is open.
    """

    def __init__(self, source: VideoStream | AudioStream, target: OutputContainer) -> None:
        self._target, self._stream = target, target.add_stream_from_template(source)
        self._filter = None
        if _codec(source) == "aac":
            self._filter = BitStreamFilterContext("aac_adtstoasc", source)

    def add(self, packet: Packet) -> None:
        """Add a packet, which then belongs to the copy."""
        for one in [packet] if self._filter is None else self._filter.filter(packet):
            one.stream = self._stream
            self._target.mux(one)


def _codec(stream: VideoStream | AudioStream) -> str:
    return stream.codec_context.codec.canonical_name
