"""Finds the parts of a file: where its time stamps begin anew or leap, video time goes on.

Two recordings that were joined, a camera that was restarted, or chained Ogg begin their time
stamps anew. Each such part is opened as a file of its own within the file, since seeking by time
stamps that occur twice finds either.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import merge
from itertools import islice, zip_longest
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import MediaError
from domain.time import TimeSpan, format_clock
from domain.words import marked
from perception.containers import (
    StreamClock,
    audio_stream,
    open_media,
    origin,
    read_packets,
    video_stream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream


# Maps the time stamps of a source to video time.
#
# Time stamps of a live source, and of files that were joined, leap, wrap around and begin anew.
# Within a connection or a file they are believed as long as they go on from one another; where they
# do not, time goes on where the clock on the wall is, but never before what came already. So video
# time never runs backwards, a break of a live source takes as long on the timeline as it took, and
# a mere leap of the stamps takes no time.

_MAX_REORDER_MS = 500
"""Stamps of one stream may be out of order by so much."""


@dataclass
class Timeline:
    """Maps media time to video time, in milliseconds; ``latest_ms`` is the latest so far.

    Stamps that leap further than ``jump_ms`` are of a new clock. ``clocks`` are those that began:
    each by the video time at which it did, and what is added to its stamps.
    """

    jump_ms: int
    latest_ms: int = 0
    clocks: list[tuple[int, int]] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=list)
    _last_ms: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """Forget the offsets: time stamps of a new connection are unrelated."""
        self._offsets.clear()
        self._last_ms.clear()

    def to_video_ms(self, stream: str, media_ms: int, now_ms: int) -> int:
        """Return the video time of time stamp ``media_ms`` that arrived at video time ``now_ms``.

        May lie up to ``jump_ms`` before what a connection began with, since sound and pictures
        do not begin together.
        """
        placed = (media_ms + offset for offset in self._offsets)
        at = next((at for at in placed if self._fits(stream, at)), None)
        if at is None:
            at = max(self.latest_ms, now_ms)
            self.clocks.append((at, at - media_ms))
            # Of the clock before, what the other stream still brings is placed by it.
            self._offsets = [at - media_ms, *self._offsets[:1]]
            self._last_ms.pop(stream, None)
        self._last_ms[stream] = max(at, self._last_ms.get(stream, at))
        self.latest_ms = max(self.latest_ms, at)
        return at

    def _fits(self, stream: str, at: int) -> bool:
        first = (
            self._last_ms[stream] - _MAX_REORDER_MS
            if stream in self._last_ms
            else self.clocks[-1][0] - self.jump_ms
        )
        return first <= at <= self.latest_ms + self.jump_ms


LEAP_MS = 3_600_000
"""So long without picture and sound is a leap of the clock. A slide of a silent recording may
stand for most of an hour."""
LONGEST_LAST_MS = 60_000
"""How much longer a file may be than what is in it: its last picture is shown for so long."""
MOST_PARTS = 1_000
_AHEAD = 50
_MOST_SEARCHED = 64 << 20
_TS_PACKETS = (188, 192, 204)
_HEADS = {
    "ogg": b"OggS\x00\x02",
    "matroska": b"\x1aE\xdf\xa3",
    "flv": b"FLV\x01",
    "mpegts": b"G\x40\x00",
    "mpeg": b"\x00\x00\x01\xba",
    "mov": b"ftyp",
}
"""What a file of a format begins with; MP4 behind the four bytes of a length."""
_LENGTH_BYTES = {"mov": 4}
_REPEATED = ("mpegts", "mpeg")
"""Formats that repeat it every now and then."""


@dataclass(frozen=True)
class Part:
    """A stretch of a file whose time stamps go on from one another.

    Attributes:
        span: when it is shown, in video time.
        origin: where video time 0 would lie on its own clock, in seconds.
        first_byte: where it begins as a file of its own.
        end_byte: where that ends; 0: where the file does.
    """

    span: TimeSpan
    origin: Fraction
    first_byte: int = 0
    end_byte: int = 0

    @property
    def is_within(self) -> bool:
        """Whether it is a file within the file: others' stamps may come in its first packets."""
        return bool(self.first_byte or self.end_byte)

    def open(self, path: Path) -> InputContainer:
        """Open the file, or what is within it.

        Raises:
            MediaError: the file is not there, or is not video or audio.
        """
        return open_media(path, self.first_byte, self.end_byte)

    def clock(self, base: Fraction) -> StreamClock:
        """Return the clock of a stream by its time base in seconds."""
        return StreamClock(base, self.origin)


def find_parts(
    path: Path, track: int | None, stated_ms: int | None
) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Return a file's parts in order, and remarks on where they meet and what is not watched.

    Args:
        track: the index of the stream of sound; None: the main one.
        stated_ms: the length that its header states; None where it means little.

    Raises:
        MediaError: the file cannot be read, begins anew too often, or has no length.
    """
    parts, remarks, first, end_ms = list[Part](), list[str](), 0, 0
    following: int | None = 0
    while following is not None:
        first, clocks = following, list[Part]()
        try:
            end_ms, following = _read_clock(path, first, track, end_ms, clocks)
        except MediaError:
            if not parts:
                raise
            following = first
        if following is not None and following <= first:
            where = format_clock(end_ms)
            remarks.append(marked(f"its clock runs back at {where}: the rest is not watched"))
            following = None
        parts += [replace(one, end_byte=following or 0) for one in clocks]
        if len(parts) > MOST_PARTS:
            raise MediaError(f"{path}: damaged: its clock begins anew over {MOST_PARTS} times")
    for one in parts[1:]:
        where = format_clock(one.span.start_ms)
        remarks.append(marked(f"its clock begins anew at {where}, where parts were joined"))
    if len(parts) == 1 and stated_ms is not None:
        if stated_ms - end_ms > LONGEST_LAST_MS:
            whole, there = format_clock(stated_ms), format_clock(end_ms)
            remarks.append(marked(f"it states a length of {whole}, and ends at {there}"))
        else:
            parts = [replace(parts[0], span=TimeSpan.of(0, stated_ms))]
    if parts[-1].span.end_ms <= 0:
        raise MediaError(f"{path}: has no length")
    return tuple(parts), tuple(remarks)


def _read_clock(
    path: Path, first: int, track: int | None, start_ms: int, parts: list[Part]
) -> tuple[int, int | None]:
    """Read the stamps of a file within the file up to where they begin anew.

    Args:
        first: the byte where it begins.
        track: the index of the stream of sound.
        start_ms: when it begins, in video time.
        parts: gets a part for each time that the stamps leap ahead, and one more.

    Returns:
        When it ends, in milliseconds of video time, and the byte where the next one begins, if any.
    """
    with open_media(path, first) as container:
        name, zero = container.format.name.split(",")[0], origin(container)
        timeline, last = Timeline(LEAP_MS), 0
        timeline.to_video_ms("", int(zero * 1000), 0)
        begun, end, following = (start_ms, zero - Fraction(start_ms, 1000)), zero, None

        def finish() -> int:
            until = max(begun[0], int((end - begun[1]) * 1000))
            parts.append(Part(TimeSpan.of(begun[0], until), begun[1], first))
            return until

        stamps = _stamps(container, track)
        for kind, at, length, byte in stamps:
            clocks = len(timeline.clocks)
            timeline.to_video_ms(kind, int(at * 1000), 0)
            if len(timeline.clocks) > clocks and at < end:
                # Of another stream, what comes next may lie before it.
                ahead = islice(stamps, _AHEAD)
                new = [stamp[3] for stamp in ahead if abs(stamp[1] - at) < abs(stamp[1] - end)]
                known = [one for one in (byte, *new) if one > 0]
                following = _head_before(path, name, first + min(known, default=0))
                break
            if len(timeline.clocks) > clocks:
                after_ms = finish()
                begun, end = (after_ms, at - Fraction(after_ms, 1000)), at
            if at >= end - Fraction(LEAP_MS, 1000):
                end = max(end, at + length)
            last = max(last, first + byte)
        else:
            if name not in _HEADS or name in _REPEATED:
                following = None
            else:
                with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                    place = data.find(_HEADS[name], last + 1) - _LENGTH_BYTES.get(name, 0)
                    following = place if place > last else None
        return finish(), following


def _stamps(
    container: InputContainer, track: int | None
) -> Iterator[tuple[str, Fraction, Fraction, int]]:
    """Yield kind, time and length in seconds, and place in the file, of each packet."""
    found = (video_stream(container), audio_stream(container, track))
    streams = [one for one in found if one is not None]
    if all(0 < one.frames <= len(one.index_entries) for one in streams):
        # MP4 has an index of every packet: by it, a long recording is looked through at once.
        yield from merge(*map(_indexed, streams), key=lambda stamp: stamp[1])
        return
    lengths = dict.fromkeys((one.index for one in streams), Fraction(0))
    for packet in read_packets(container, streams):
        stamp = packet.dts if packet.dts is not None else packet.pts
        if stamp is not None:
            base, index = packet.time_base, packet.stream.index
            shown = stamp if packet.pts is None else max(stamp, packet.pts)
            lengths[index] = _believed((packet.duration or 0) * base, lengths[index])
            length = (shown - stamp) * base + lengths[index]
            yield packet.stream.type, stamp * base, length, packet.pos or 0


def _indexed(stream: VideoStream | AudioStream) -> Iterator[tuple[str, Fraction, Fraction, int]]:
    base, length = stream.time_base or Fraction(1), Fraction(0)
    entries = [one for one in stream.index_entries if not one.is_discard]
    for one, after in zip_longest(entries, entries[1:]):
        if after is not None:
            length = _believed((after.timestamp - one.timestamp) * base, length)
        yield stream.type, one.timestamp * base, length, one.pos


def _believed(length: Fraction, before: Fraction) -> Fraction:
    """A leap of the clock is stored as a packet that lasts for so long."""
    return length if length * 1000 < LEAP_MS else before


def _head_before(path: Path, name: str, byte: int) -> int | None:
    """Return where the file within a file begins that has a packet; None if it cannot be told."""
    mark = _HEADS.get(name)
    if mark is None:
        return 0
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        end, lowest = byte + len(mark), max(0, byte - _MOST_SEARCHED)
        while (at := data.rfind(mark, lowest, end)) >= 0:
            if name != "mpegts" or any((byte - at) % size == 0 for size in _TS_PACKETS):
                break
            end = at + len(mark) - 1
        # Of several streams of Ogg, each has a first page, one right after the other.
        while name == "ogg" and (before := data.rfind(mark, lowest, at)) >= 0:
            if (
                before + 27 + data[before + 26] + sum(data[before + 27 :][: data[before + 26]])
                != at
            ):
                break
            at = before
    # What repeats its heads can be read from anywhere.
    return byte if at < 0 and name in _REPEATED else max(0, at - _LENGTH_BYTES.get(name, 0))
