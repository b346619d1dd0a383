"""A live stream on its way into memory: the steps of watching, clip by clip as they come.

A row is made of a clip when it is about to be watched, so nothing is known of what never came. A
stream that is taken up again goes on as the same video, after a gap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread

from domain import faults
from domain.audit import Deed
from domain.errors import ModelError
from domain.media import Video
from domain.streams import LEVELS, Stream, StreamClip
from flows.ingest_video import ClipLeft, VideoIngestion, models_used
from flows.video_locks import alone, claimed
from flows.workspace import Workspace
from memory.subtitles import Accompaniment
from perception.clip_buffer import ClipBuffer
from perception.degradation import DegradationPolicy, thinned
from perception.live import LiveSource
from perception.live_clips import Captured
from perception.live_reader import Clock, LiveReader, OpenSource, StreamPosition, WallClock, reach
from perception.perceive_clip import Perceived, perceive
from perception.source import SourceInfo
from store.queries import streams as stream_rows
from store.queries import videos as video_rows
from store.queries.audit import note


class StreamIngestion(VideoIngestion):
    """The steps of a live stream; ``follow`` has their order."""

    def __init__(
        self, desk: Workspace, follower: LiveReader, video: Video, pace: DegradationPolicy
    ) -> None:
        super().__init__(desk, Path(follower.source.name), _shape(video), video, Accompaniment())
        self._arrived: dict[int, Captured] = {}
        self._follower, self._pace = follower, pace
        self._order: deque[int] = deque()
        self._levels: dict[int, tuple[int, int]] = {}
        self._began = time.monotonic()

    @property
    def stop(self) -> Event:
        """To be set to end the stream; what came is still watched."""
        return self._follower.stop

    @property
    def waiting(self) -> int:
        """Clips that came and nobody took up yet."""
        return len(self._follower.buffer)

    def taken(self) -> list[int]:
        """Clips that were taken up and are not in memory yet, in order."""
        return list(self._order)

    def take_up(self, *, wait: bool) -> int | None:
        """Takes up the next clip, and adds its row; None at the stream's end, or if none waits.

        Raises:
            HomerError: what reading the source ended with.
        """
        captured = self._follower.buffer.take(wait=wait)
        if captured is None:
            if wait and self._follower.error is not None:
                raise self._follower.error
            return None
        clip = captured.raw.clip
        told = StreamClip(clip=clip.index, level=captured.level, tally=captured.tally)
        with self.desk.store.begin() as session:
            stream_rows.add_clip(session, self.video.id, clip, told, captured.gaps)
        self._arrived[clip.index] = captured
        self._order.append(clip.index)
        if self._drafting is not None:
            self._drafting.expect([clip.index])
        return clip.index

    def remember(self, clip: int) -> None:
        """Store the perceived clip; how it was watched is noted with it.

        Raises:
            ClipLeft: it could not be decoded, or its memory not be written.
        """
        try:
            super().remember(clip)
        except ClipLeft:
            self._lose(clip)
            raise
        self._done(clip)

    def give_up(self, clip: int, error: ModelError) -> None:
        """Leave a clip as failed; it cannot be tried again, since what came has gone by."""
        super().give_up(clip, error)
        self._ready.pop(clip, None)
        self._took.pop(clip, None)
        self._lose(clip)

    def end(self) -> str:
        """Marks the stream as watched so far; what is said of its end."""
        with self.desk.store.begin() as session:
            stream_rows.add_gaps(session, self.video.id, self._follower.owed)
        state = self.state()
        self._mark(video_rows.DONE)
        return f"{state.clips} clips are kept, the last one as short as it was"

    def begin_stream(self) -> int:
        """Marks the stream as being watched; how many clips it has."""
        self._mark(video_rows.WATCHING)
        self._draft_ahead(())
        return self.state().clips

    def perceive(self, clip: int) -> None:
        """Find what the clip shows and says, as much of it as there is time for."""
        if clip not in self._ready:
            start = time.monotonic()
            found = self._look(self._arrived[clip])
            self._keep(clip, found, time.monotonic() - start)
            faults.fault_point(faults.FaultPoint.PERCEIVED)

    def _look(self, captured: Captured) -> Perceived:
        settings = self.desk.settings.watch
        level = max(captured.level, self._pace.level)
        frames = thinned(captured.raw.frames, captured.level, level)
        self._levels[captured.raw.clip.index] = (level, len(frames))
        lighter = replace(captured.raw, frames=frames)
        return perceive(lighter, self.desk.toolbox, settings, LEVELS[level].without)

    def _done(self, clip: int) -> None:
        captured = self._arrived.pop(clip)
        self._order.remove(clip)
        level, sampled = self._levels.pop(clip, (captured.level, captured.tally.sampled))
        lag_ms = max(0, self._follower.clock.now_ms() - captured.came_ms)
        told = StreamClip(
            clip=clip,
            level=level,
            tally=captured.tally.model_copy(update={"sampled": sampled}),
            lag_ms=lag_ms,
        )
        with self.desk.store.begin() as session:
            stream_rows.set_watched(session, self.video.id, told)
        if not captured.waits:
            self._pace.after(lag_ms, captured.raw.clip.span.length_ms, self.waiting)

    def _lose(self, clip: int) -> None:
        with self.desk.store.begin() as session:
            stream_rows.lose_clip(session, self.video.id, clip)
        if clip in self._arrived:
            self._done(clip)


@contextmanager
def open_stream(
    desk: Workspace,
    source: LiveSource,
    *,
    stop: Event,
    clock: Clock | None = None,
    said: Callable[[str], None] = lambda _text: None,
    away_s: float | None = None,
    pace: DegradationPolicy | None = None,
) -> Iterator[StreamIngestion]:
    """The video of a live source, which is read from now on; nobody else may watch it.

    Args:
        desk: the store and the models.
        source: what to follow.
        stop: set from outside to end it.
        clock: the time of day.
        said: is told of breaks.
        away_s: a source that is away for so long is at its end; None: never.
        pace: the level to begin at; None: everything.

    Raises:
        Unreachable: a source that was never watched does not answer; no row is left.
        InputError: another process watches it.
    """
    time_of_day = clock or WallClock()
    with (
        alone(desk.home, source.id, source.label),
        claimed(desk.store, source.id, source.label),
    ):
        with desk.store.begin() as session:
            known = video_rows.known_video(session, source.id)
        first = reach(source, desk.settings, stop.is_set) if known is None else None
        video, place = _placed(desk, source, first, time_of_day)
        buffer, pace = ClipBuffer(desk.settings.stream.waiting), pace or DegradationPolicy()
        follower = LiveReader(
            source, desk.settings, place, buffer, time_of_day, stop, lambda: pace.level, said
        )
        follower.away_s = away_s
        with _reading(follower, first):
            yield StreamIngestion(desk, follower, video, pace)


@contextmanager
def _reading(follower: LiveReader, first: OpenSource | None) -> Iterator[None]:
    """The source is read in a thread of its own; it ends with the block."""
    thread = Thread(target=follower.run, args=(first,), name="follow", daemon=True)
    thread.start()
    patience_s = follower.settings.stream.quiet_s
    try:
        yield
    except KeyboardInterrupt:
        patience_s = 0  # Whoever presses Ctrl-C again waits for no source.
        raise
    finally:
        follower.stop.set()
        follower.buffer.leave()
        thread.join(patience_s)


def _placed(
    desk: Workspace, source: LiveSource, first: OpenSource | None, clock: Clock
) -> tuple[Video, StreamPosition]:
    """The stream's rows, made where it is new, and where on its timeline it goes on."""
    with desk.store.begin() as session:
        if first is not None:
            video = _video(desk, source, first)
            if video_rows.add_video(session, video, (), models_used(desk.profile)):
                note(session, Deed.ADDED, video.id)
            stream = Stream(source=source.name, began_ms=clock.now_ms())
            stream_rows.add_stream(session, video.id, stream)
        stream_row = stream_rows.find_stream(session, source.id)
        next_clip, end_ms = stream_rows.take_up(session, source.id)
        video = video_rows.find_video(session, source.id)
    began_ms = stream_row.began_ms if stream_row else clock.now_ms()
    return video, StreamPosition(began_ms, next_clip, end_ms)


def _shape(video: Video) -> SourceInfo:
    """A stream as a source without length."""
    return SourceInfo(
        duration_ms=0,
        width=video.width,
        height=video.height,
        has_video=video.has_video,
        has_audio=video.has_audio,
        frame_rate=0.0,
        video_codec=None,
        audio_codec=None,
        origin=Fraction(0),
    )


def _video(desk: Workspace, source: LiveSource, first: OpenSource) -> Video:
    shape = first.shape
    return Video(
        id=source.id,
        title=source.label,
        path=None,
        duration_ms=0,
        width=shape.width,
        height=shape.height,
        has_video=shape.has_video,
        has_audio=shape.has_audio,
        profile=desk.profile.name,
    )
