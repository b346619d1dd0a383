"""Reads the pictures of a video at its sample instants, in one decoding pass.

Every picture that others are predicted from is decoded. Of the rest (in H.264 about half) only
those that a sample instant shows are: packets are looked at some way ahead, so that it is known
when each picture gives way to the next. Pixels come out the same as with everything decoded, so
this is done only for codecs that name the pictures nothing whatever depends on.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np

from models.devices import limit_arenas
from perception.containers import Packet, read_packets
from perception.cut_file import open_before, pictures_of
from perception.frames import SampleGrid

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from perception.parts import Part
    from perception.source import SourceInfo

_EARLY_MS = 1_000
"""Pictures of a part may begin so long before its sound."""
_LOOKAHEAD = 24
"""Packets looked at ahead, and remembered behind: more than any reordering (16 in H.264)."""

_HVCC_VERSION, _HVCC_LAYERS = 1, 21
"""First byte of an HEVC stream's header as MP4 and Matroska have it, and the place of the byte
with the number of temporal layers."""


@dataclass(frozen=True, eq=False)
class SampledPicture:
    """What an instant shows: a picture since ``time_ms``, or None where it did not decode."""

    instant_ms: int
    time_ms: int
    picture: av.VideoFrame | None


def read_pictures(
    path: Path,
    info: SourceInfo,
    settings: WatchSettings,
    from_ms: int = 0,
    until_ms: int | None = None,
    *,
    single_threaded: bool = False,
) -> Generator[SampledPicture]:
    """Yield the picture of each sample instant of a source, in order; close it.

    Args:
        settings: how often it is sampled.
        from_ms: instants before it are left out.
        until_ms: so are those from then on, and nothing is decoded for them.
        single_threaded: decode in the caller's thread alone, which takes less of the processor.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    keep_freed_memory()
    until = info.duration_ms if until_ms is None else until_ms
    for part in info.parts_within(from_ms, until):
        begin, end = max(from_ms, part.span.start_ms), min(until, part.span.end_ms)
        pictures = _PartPictures(
            path, info, part, settings, begin, end, single_threaded=single_threaded
        )
        with closing(pictures):
            yield from pictures


class _PartPictures:
    """Reads the sampled pictures of a part of a source from a time on; iterate it once."""

    def __init__(
        self,
        path: Path,
        info: SourceInfo,
        part: Part,
        settings: WatchSettings,
        from_ms: int,
        until_ms: int,
        *,
        single_threaded: bool,
    ) -> None:
        self._part, self._from, self._until = part, from_ms, until_ms
        self._grid = SampleGrid.of(settings)
        self._tolerance_ms = int(1000 / settings.sample_fps)
        self._container = open_before(path, info, part, "video", from_ms)
        self._stream, base = pictures_of(self._container)
        self._clock = part.clock(base)
        self._stream.thread_type = "AUTO"
        self._context = self._stream.codec_context
        if single_threaded:
            self._context.thread_count = 1
        self._skips_unreferenced = marks_unreferenced(self._context) and not info.interlaced
        self._due: dict[int, int] = {}
        self._end_ms = 0

    def close(self) -> None:
        """Close the file and the decoder."""
        self._container.close()

    def __iter__(self) -> Iterator[SampledPicture]:
        """Yield the picture of each instant, in order, from the first picture on."""
        since, picture = -1, None
        for time, frame in self._decode():
            if time > since:
                yield from self._sampled_until(time, since, picture)
                since, picture = time, frame
            if time >= self._until:
                return
        yield from self._sampled_until(self._end_ms, since, picture)

    def _sampled_until(
        self, end: int, since: int, picture: av.VideoFrame | None
    ) -> Iterator[SampledPicture]:
        """Yield the instants before ``end`` that show the picture of time ``since``."""
        for instant in self._grid.within(max(since, self._from), min(end, self._until)):
            due = self._due.pop(instant, None)
            if since < 0 and due is None:
                continue
            stale = due is not None and due - since > self._tolerance_ms
            yield SampledPicture(instant, since, None if stale else picture)

    def _decode(self) -> Iterator[tuple[int, av.VideoFrame | None]]:
        """Yield time and picture in display order; None in place of a damaged picture."""
        damaged = False
        for packet in self._packets_to_decode():
            try:
                frames = self._context.decode(packet)
            except av.FFmpegError:
                damaged = True
                continue
            for frame in frames:
                # What follows a damaged picture is predicted from it, up to the next key picture.
                damaged = frame.is_corrupt or (damaged and not frame.key_frame)
                if (time := self._time_of(frame)) is not None:
                    yield time, None if damaged else frame

    def _packets_to_decode(self) -> Iterator[Packet | None]:
        """Yield packets, after telling the decoder whether it may skip them; None at the end."""
        packets = read_packets(self._container, [self._stream])
        timed = ((packet, self._time_of(packet)) for packet in packets if packet.size)
        for packet, time, until in _with_next_time(timed):
            needed = time is None
            if time is not None:
                # The picture is due at each instant of ``[time, until)``.
                self._end_ms = max(self._end_ms, until)
                instants = list(self._grid.within(max(time, self._from), min(until, self._until)))
                self._due.update(dict.fromkeys(instants, time))
                needed = bool(instants)
            if self._skips_unreferenced:
                self._context.skip_frame = "DEFAULT" if needed else "NONREF"
            yield packet
        yield None

    def _time_of(self, packet: Packet | av.VideoFrame) -> int | None:
        """Return when a picture is shown; None if it is not, or is of another part."""
        if packet.pts is None or (isinstance(packet, av.Packet) and packet.is_discard):
            return None
        time, span = self._clock.ms(packet.pts), self._part.span
        own = span.start_ms - _EARLY_MS <= time < span.end_ms
        return time if own or not self._part.is_within else None


def marks_unreferenced(context: av.VideoCodecContext) -> bool:
    """Tell whether the codec marks pictures that no other depends on.

    In HEVC a picture may be needed by those of a higher temporal layer, unless there is but one.
    In VP8 the next pictures may reuse its map of segments; an AV1 decoder is told but once.
    """
    if context.name != "hevc":
        return context.name == "h264"
    header = bytes(context.extradata or b"")
    stated = len(header) > _HVCC_LAYERS and header[0] == _HVCC_VERSION
    return stated and header[_HVCC_LAYERS] >> 3 & 7 == 1


def keep_freed_memory() -> None:
    """Let the C library keep the buffers of pictures for the next ones.

    By default it gives each back to the system, and gets the next page by page: at 1080p half as
    much work again as decoding. To have freed one large block raises glibc's limits for all that
    follow (its mmap threshold is dynamic, up to 32 MB); with other C libraries it does nothing.
    """
    limit_arenas()
    np.empty(31 << 20, np.uint8)


def _with_next_time(
    timed: Iterable[tuple[Packet, int | None]],
) -> Iterator[tuple[Packet, int | None, int]]:
    """Yield packets in decoding order, each with its time and that of the next picture shown."""
    queue: deque[tuple[Packet, int | None]] = deque()
    window = _TimeWindow(2 * _LOOKAHEAD)
    for packet, time in timed:
        queue.append((packet, time))
        window.add(time)
        if len(queue) > _LOOKAHEAD:
            yield _timed_packet(*queue.popleft(), window)
    for packet, time in queue:
        yield _timed_packet(packet, time, window)


def _timed_packet(
    packet: Packet, time: int | None, window: _TimeWindow
) -> tuple[Packet, int | None, int]:
    if time is None:
        return packet, None, 0
    until = window.after(time)
    if until is None:
        until = time + max(1, round((packet.duration or 0) * packet.time_base * 1000))
    return packet, time, until


class _TimeWindow:
    """The last ``size`` times added, sorted."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen: deque[int] = deque()
        self._sorted: list[int] = []

    def add(self, time: int | None) -> None:
        if time is None:
            return
        self._seen.append(time)
        insort(self._sorted, time)
        if len(self._seen) > self._size:
            self._sorted.remove(self._seen.popleft())

    def after(self, time: int) -> int | None:
        """Return the first time later than ``time``, if any."""
        index = bisect_right(self._sorted, time)
        return self._sorted[index] if index < len(self._sorted) else None
