"""Reads a live source for as long as it lasts, and reconnects when it breaks off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from threading import Event
from typing import TYPE_CHECKING, Protocol, cast

import av

from domain.media import LEVELS, Gap, GapReason
from perception.containers import Packet, audio_stream, video_stream
from perception.live import LiveSource, SourceConnection, SourceUnreachable, connect
from perception.live_clips import CapturedClip, ClipBuffer, LiveClips
from perception.parts import Timeline
from perception.picture_stream import keep_freed_memory, marks_unreferenced
from perception.recording import StreamRecorder

if TYPE_CHECKING:
    from av.container import InputContainer

    from domain.settings import Settings

BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""How long to wait before each try to connect again; then always as long as the last time."""
_MAX_FAILED_READS = 50
"""Reads in a row that fail before the connection is given up as broken."""


class Clock(Protocol):
    """The current time, and waiting; tests use their own."""

    def now_ms(self) -> int:
        """Return Unix time in milliseconds; does not run backwards."""

    def wait(self, seconds: float, stop: Event) -> None:
        """Wait, or until ``stop`` is set."""


class SystemClock:
    """The system time, monotonic even if the machine's clock is set meanwhile."""

    def __init__(self) -> None:
        self._zero = time.time() - time.monotonic()

    def now_ms(self) -> int:
        """Return Unix time in milliseconds."""
        return int((self._zero + time.monotonic()) * 1000)

    def wait(self, seconds: float, stop: Event) -> None:
        """Wait, or until ``stop`` is set."""
        stop.wait(seconds)


@dataclass(eq=False)
class OpenSource:
    """An open source: its container and connection."""

    container: InputContainer
    connection: SourceConnection | None

    @property
    def shape(self) -> tuple[bool, bool, int, int]:
        """Return whether it sends pictures and sound, and width and height in pixels, or 0."""
        video, audio = video_stream(self.container), audio_stream(self.container)
        picture = video.codec_context if video else None
        width, height = (picture.width, picture.height) if picture else (0, 0)
        return video is not None, audio is not None, width, height

    @property
    def finite(self) -> bool:
        """Tell whether its length is known: a recording, which waits for its reader."""
        return bool(self.container.duration)

    def close(self) -> None:
        self.container.close()
        if self.connection is not None:
            self.connection.close()


def open_source(
    source: LiveSource,
    settings: Settings,
    is_stopping: Callable[[], bool],
    is_timed_out: Callable[[], bool] = lambda: False,
) -> OpenSource:
    """Connect to a source; wait for a pipe's writer until ``is_timed_out``.

    Raises:
        SourceUnreachable: it does not answer, or sends nothing that can be watched.
    """
    connection = OpenSource(*connect(source, settings.stream, is_stopping, is_timed_out))
    has_video, has_audio, _, _ = connection.shape
    if not (has_video or has_audio):
        connection.close()
        raise SourceUnreachable(f"{source.label}: sends neither video nor audio that can be read")
    return connection


@dataclass(frozen=True)
class StreamPosition:
    """Where a stream continues: the next clip's number, and the last one's end."""

    began_ms: int
    next_clip: int = 0
    end_ms: int = 0


@dataclass(eq=False)
class LiveReader:
    """Reads a source to its end, or until stopped, and puts its clips into the buffer.

    ``level`` gives the degradation level of the next clip. A source that cannot be reached for
    ``max_outage_s`` seconds has ended (None: never). ``pending_gaps`` follow the last clip. The
    clips have recordings where the settings say so.
    """

    source: LiveSource
    settings: Settings
    position: StreamPosition
    buffer: ClipBuffer
    clock: Clock
    stop: Event
    level: Callable[[], int] = lambda: 0
    on_message: Callable[[str], None] = lambda _text: None
    max_outage_s: float | None = None
    pending_gaps: tuple[Gap, ...] = ()
    error: BaseException | None = None
    _delays: Iterator[float] = field(default_factory=lambda: chain((0.0,), _backoff()))
    _damaged: bool = False
    _can_wait: bool = False

    def __post_init__(self) -> None:
        settings, place = self.settings, self.position
        self._timeline = Timeline(settings.stream.jump_ms, place.end_ms)
        self._clips = LiveClips(
            settings.watch,
            settings.stream,
            start_ms=place.end_ms,
            first_clip=place.next_clip,
            level=self.level,
        )
        self._recorder = StreamRecorder() if settings.stream.record else None

    def run(self, connection: OpenSource | None) -> None:
        """Read the source; ``connection`` is open already, or None if it is still to be opened."""
        keep_freed_memory()
        try:
            self._follow(connection)
            self._put(self._clips.flush(), last=True)
            self.pending_gaps = (*self.pending_gaps, *self._clips.pending_gaps)
        except BaseException as error:  # noqa: BLE001 - a thread's edge: the taker is told
            self.error = error
        finally:
            self._clips.close()
            self.buffer.finish()

    def _follow(self, connection: OpenSource | None) -> None:
        connection = connection or self._reconnect()
        while connection is not None:
            try:
                over = self._read(connection)
            finally:
                if self._recorder is not None:
                    self._recorder.disconnect()
                connection.close()
            if over or self.stop.is_set():
                return
            self._clips.pause()
            self._clips.note_break(self._timeline.latest_ms, GapReason.LOST)
            self.on_message(f"{self.source.label}: broke off; connecting again")
            connection = self._reconnect()

    def _reconnect(self) -> OpenSource | None:
        """Reconnect, however long it takes; None where the source is given up."""
        since = self.clock.now_ms()
        for delay in self._delays:
            self.clock.wait(delay, self.stop)
            gone_s = (self.clock.now_ms() - since) / 1000
            if self.stop.is_set() or (self.max_outage_s is not None and gone_s > self.max_outage_s):
                return None
            self._put(self._clips.close_until(self._now_ms()))
            try:
                return open_source(
                    self.source, self.settings, self.stop.is_set, self._pipe_timeout()
                )
            except SourceUnreachable:
                continue
        return None

    def _pipe_timeout(self) -> Callable[[], bool]:
        """Return a check of whether a pipe's writer has been waited for long enough."""
        until = time.monotonic() + self.settings.stream.connect_s
        return lambda: time.monotonic() > until

    def _now_ms(self) -> int:
        return max(0, self.clock.now_ms() - self.position.began_ms)

    def _read(self, connection: OpenSource) -> bool:
        """Read to the end of the connection; tell whether the source has ended too."""
        self._timeline.reset()
        self._damaged = False
        self._can_wait = connection.finite or self.source.kind == "pipe"
        if self._recorder is not None and (why := self._recorder.connect(connection.container)):
            self.on_message(f"{self.source.label}: {why}")
        for packet in _packets(connection.container):
            if self.stop.is_set():
                return True
            if self._recorder is not None:
                self._recorder.add(packet)
            is_video = isinstance(packet.stream, av.VideoStream)
            self._put(self._decode_video(packet) if is_video else self._decode_audio(packet))
        ended = connection.connection is not None and connection.connection.ended
        return connection.finite or (ended and self.source.address == "-")

    def _decode_video(self, packet: Packet) -> Iterator[CapturedClip]:
        self._clips.count_pictures(1 if packet.size else 0)
        context = packet.stream.codec_context
        if LEVELS[self.level()].references_only and marks_unreferenced(context):
            context.skip_frame = "NONREF"
        else:
            context.skip_frame = "DEFAULT"
        try:
            frames = packet.decode()
        except av.FFmpegError:
            self._damaged = True
            self._clips.count_pictures(0, damaged=1)
            return
        for frame in frames:
            self._damaged = frame.is_corrupt or (self._damaged and not frame.key_frame)
            self._clips.count_pictures(0, damaged=int(self._damaged))
            at = self._video_time("video", frame)
            if at is not None:
                yield from self._clips.add_picture(None if self._damaged else frame, at)

    def _decode_audio(self, packet: Packet) -> Iterator[CapturedClip]:
        try:
            frames = packet.decode()
        except av.FFmpegError:
            return
        for frame in cast("list[av.AudioFrame]", frames):
            at = self._video_time("audio", frame)
            if at is not None:
                yield from self._clips.add_audio(frame, at)

    def _video_time(self, stream: str, frame: av.VideoFrame | av.AudioFrame) -> int | None:
        """Return the video time of a frame in milliseconds; None without a time stamp."""
        stamp = frame.pts if frame.pts is not None else frame.dts
        if stamp is None or frame.time_base is None:
            return None
        self._delays = _backoff()
        media_ms = int(stamp * frame.time_base * 1000)
        video_ms = self._timeline.to_video_ms(stream, media_ms, self._now_ms())
        if self._recorder is not None:
            self._recorder.place(media_ms, video_ms)
        return video_ms

    def _put(self, clips: Iterable[CapturedClip], *, last: bool = False) -> None:
        """Put clips into the buffer; drop one where it is full and the source cannot wait."""
        for clip in clips:
            gaps, now_ms = (*self.pending_gaps, *clip.gaps), self.clock.now_ms()
            span = clip.raw.clip.span
            recording = None if self._recorder is None else self._recorder.take(span)
            pending = replace(
                clip, gaps=gaps, arrived_ms=now_ms, can_wait=self._can_wait, recording=recording
            )
            if self.buffer.put(
                pending, wait=self._can_wait or last or span.end_ms > self._now_ms()
            ):
                self.pending_gaps = ()
                continue
            self._clips.discard_last()
            missed = Gap(span=span, reason=GapReason.OVERRUN, frames=clip.tally.came)
            self.pending_gaps = (*pending.gaps, missed)


def _backoff() -> Iterator[float]:
    return chain(BACKOFF_S, repeat(BACKOFF_S[-1]))


def _packets(container: InputContainer) -> Iterator[Packet]:
    """Yield video and audio packets, skipping unreadable ones, until the connection breaks."""
    streams = [s for s in (video_stream(container), audio_stream(container)) if s is not None]
    packets, failures = container.demux(streams), 0
    while failures < _MAX_FAILED_READS:
        try:
            packet = next(packets, None)
        except av.error.InvalidDataError:
            packets, failures = container.demux(streams), failures + 1
            continue
        except (av.FFmpegError, OSError):
            return
        if packet is None:
            return
        failures = 0
        yield packet
