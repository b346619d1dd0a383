"""The ingestion of a live stream, clip by clip as they arrive.

The row of a clip is added when it is about to be watched, so there are no rows of clips that never
arrived. A stream that is watched again continues the same video, after a gap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

from httpx import HTTPError

from domain import faults
from domain.errors import ModelError
from domain.media import LEVELS, Stream, StreamClip, Video
from domain.rights import Deed
from domain.settings import WorkSettings
from flows.alert_delivery import alerts_beside
from flows.clip_memory import Ingestion
from flows.executors import ClipFailed, Executor, connect_to_prefect, direct_executor, run_reported
from flows.ingest_video import models_used
from flows.perception_workers import WorkerPool
from flows.video_locks import exclusive_lock
from flows.watching import BUILD_WINDOWS, Listener, build_windows_if_due, failure_of, settle_clip
from flows.workspace import Workspace
from perception.clip_view import clip_view
from perception.frame_keeper import sample_frames
from perception.hearing import NOTHING_HEARD, Heard
from perception.live import LiveSource
from perception.live_clips import CapturedClip, ClipBuffer, DegradationPolicy, subsample_frames
from perception.live_reader import (
    Clock,
    LiveReader,
    OpenSource,
    StreamPosition,
    SystemClock,
    open_source,
)
from perception.perceive_clip import perceive
from store.queries import videos as stream_rows
from store.queries import videos as video_rows
from store.queries.blobs import add_recording, lock_blobs_shared
from store.queries.rights import record_deed

RUN_CLIPS = 10
"""Clips per flow run: a stream may last for months, and the record of a run must not."""


class StreamIngestion(Ingestion):
    """The steps of a live stream; ``follow_stream`` has their order.

    A clip of it is in this process only, so no other process can perceive it.
    """

    def __init__(
        self, workspace: Workspace, reader: LiveReader, video: Video, policy: DegradationPolicy
    ) -> None:
        super().__init__(workspace, video)
        self._reader, self._policy = reader, policy
        self._arrived: dict[int, CapturedClip] = {}
        self._order: deque[int] = deque()
        self._levels: dict[int, tuple[int, int]] = {}
        self._heard: tuple[int, Heard] = (0, NOTHING_HEARD)

    @property
    def stop(self) -> Event:
        """Return the event that ends the stream; clips that have arrived are still watched."""
        return self._reader.stop

    @property
    def waiting(self) -> int:
        """Return how many clips have arrived and were not taken."""
        return len(self._reader.buffer)

    def start_stream(self) -> int:
        """Mark the stream as being watched; return how many clips it has."""
        self.mark(video_rows.WATCHING)
        self.start_drafts()
        return self.state().clips

    def taken(self) -> list[int]:
        """Return the clips that were taken and are not in memory yet, in order."""
        return list(self._order)

    def take_up(self, *, wait: bool) -> int | None:
        """Take the next clip and add its row; None at the stream's end, or if none waits.

        Raises:
            HomerError: the error with which reading the source ended.
        """
        captured = self._reader.buffer.get(wait=wait)
        if captured is None:
            if wait and self._reader.error is not None:
                raise self._reader.error
            return None
        clip = captured.raw.clip
        record = StreamClip(clip=clip.index, level=captured.level, tally=captured.tally)
        with self.workspace.store.begin() as session:
            stream_rows.add_clip(session, self.video.id, clip, record, captured.gaps)
        self._arrived[clip.index] = captured
        self._order.append(clip.index)
        self.expect([clip.index])
        return clip.index

    def perceive(self, clip: int) -> None:
        """Perceive the clip, at the degradation level that the lag allows."""
        if not self.holds(clip):
            start = time.monotonic()
            captured = self._arrived[clip]
            settings = self.workspace.settings.watch
            level = max(captured.level, self._policy.level)
            frames = subsample_frames(captured.raw.frames, captured.level, level)
            self._levels[captured.raw.clip.index] = (level, len(frames))
            ended_ms, before = self._heard
            if ended_ms != captured.raw.clip.span.start_ms:
                before = NOTHING_HEARD
            thinned_clip = replace(captured.raw, frames=frames, heard_from_ms=before.after_ms)
            # Before perceiving, which empties the frames.
            view = clip_view(thinned_clip, self.workspace.profile.shown_clips, settings)
            sampled_ms = self.keepers.sampled_ms
            sampled = sample_frames(thinned_clip, sampled_ms, settings.jpeg_quality)
            found = perceive(thinned_clip, self.workspace.toolbox, settings, LEVELS[level].without)
            found = found.after(before.after)
            self._heard = (captured.raw.clip.span.end_ms, found.heard)
            perceived = replace(found, view=view, sampled=sampled)
            self.hold(clip, perceived, time.monotonic() - start)
            faults.fault_point(faults.FaultPoint.PERCEIVED)

    def remember(self, clip: int) -> None:
        """Store the perceived clip as memory, with a record of how it was watched.

        Raises:
            ClipFailed: it could not be decoded, or its memory not be written.
        """
        try:
            super().remember(clip)
        except ClipFailed:
            self._note_loss(clip)
            raise
        self._store_record(clip)

    def give_up(self, clip: int, error: ModelError) -> None:
        """Mark a clip as failed; it cannot be retried, since the stream has moved on."""
        super().give_up(clip, error)
        self._note_loss(clip)

    def end(self) -> str:
        """Mark the stream as watched so far; return a message about its end."""
        with self.workspace.store.begin() as session:
            stream_rows.add_gaps(session, self.video.id, self._reader.pending_gaps)
        state = self.state()
        self.mark(video_rows.DONE)
        return f"{state.clips} clips are kept, the last one as short as it was"

    def _store_record(self, clip: int) -> None:
        captured = self._arrived.pop(clip)
        self._order.remove(clip)
        level, sampled = self._levels.pop(clip, (captured.level, captured.tally.sampled))
        lag_ms = max(0, self._reader.clock.now_ms() - captured.arrived_ms)
        record = StreamClip(
            clip=clip,
            level=level,
            tally=captured.tally.model_copy(update={"sampled": sampled}),
            lag_ms=lag_ms,
        )
        recording = captured.recording
        with self.workspace.store.begin() as session:
            stream_rows.set_stream_clip(session, self.video.id, record)
            if recording is not None:
                lock_blobs_shared(session)
                blob, size = self.workspace.store.blobs.put(recording.mp4), len(recording.mp4)
                add_recording(session, self.video.id, clip, blob, size, recording.start_ms)
        if not captured.can_wait:
            self._policy.update(lag_ms, captured.raw.clip.span.length_ms, self.waiting)

    def _note_loss(self, clip: int) -> None:
        with self.workspace.store.begin() as session:
            stream_rows.give_up_clip(session, self.video.id, clip)
        if clip in self._arrived:
            self._store_record(clip)


@contextmanager
def open_stream(
    workspace: Workspace,
    source: LiveSource,
    *,
    stop: Event,
    clock: Clock | None = None,
    said: Callable[[str], None] = lambda _text: None,
    away_s: float | None = None,
    pace: DegradationPolicy | None = None,
) -> Iterator[StreamIngestion]:
    """Open the video of a live source, and read the source under a lock of its own.

    Args:
        stop: set by the caller to end it.
        clock: the time of day.
        said: receives messages about breaks.
        away_s: seconds without the source after which the stream has ended; None: no limit.
        pace: the degradation policy with its first level; None: from full perception on.

    Raises:
        SourceUnreachable: a source that was never watched does not answer; no row is added.
        Busy: another process watches it.
        InputError: the library has vectors of other encoders.
    """
    time_of_day = clock or SystemClock()
    workspace.require_encoders()
    with exclusive_lock(workspace.store, source.id, source.label):
        with workspace.store.begin() as session:
            known = video_rows.known_video(session, source.id)
        opened = open_source(source, workspace.settings, stop.is_set) if known is None else None
        video, position = _prepare_rows(workspace, source, opened, time_of_day)
        buffer = ClipBuffer(workspace.settings.stream.waiting)
        pace = pace or DegradationPolicy()
        reader = LiveReader(
            source,
            workspace.settings,
            position,
            buffer,
            time_of_day,
            stop,
            lambda: pace.level,
            said,
        )
        reader.max_outage_s = away_s
        with _reading_thread(reader, opened):
            yield StreamIngestion(workspace, reader, video, pace)


@contextmanager
def _reading_thread(reader: LiveReader, opened: OpenSource | None) -> Iterator[None]:
    """Read the source in a thread, which ends with the block."""
    thread = Thread(target=reader.run, args=(opened,), name="follow", daemon=True)
    thread.start()
    timeout_s = reader.settings.stream.quiet_s
    try:
        yield
    except KeyboardInterrupt:
        timeout_s = 0  # Ctrl-C does not wait for the source.
        raise
    finally:
        reader.stop.set()
        reader.buffer.cancel()
        thread.join(timeout_s)


def _prepare_rows(
    workspace: Workspace, source: LiveSource, opened: OpenSource | None, clock: Clock
) -> tuple[Video, StreamPosition]:
    """Return the stream's video, added if it is new, and its position on the timeline."""
    with workspace.store.begin() as session:
        if opened is not None:
            has_video, has_audio, width, height = opened.shape
            video = Video(
                id=source.id,
                title=source.label,
                path=None,
                duration_ms=0,
                width=width,
                height=height,
                has_video=has_video,
                has_audio=has_audio,
                profile=workspace.profile.name,
            )
            if video_rows.add_video(session, video, (), models_used(workspace.profile)):
                record_deed(session, Deed.ADDED, video.id)
            stream = Stream(source=source.name, began_ms=clock.now_ms())
            stream_rows.add_stream(session, video.id, stream)
        stream_row = stream_rows.find_stream(session, source.id)
        next_clip, end_ms = stream_rows.resume_stream(session, source.id)
        video = video_rows.find_video(session, source.id)
    began_ms = stream_row.began_ms if stream_row else clock.now_ms()
    return video, StreamPosition(began_ms, next_clip, end_ms)


def watch_stream(ingestion: StreamIngestion, listener: Listener, *, direct: bool = False) -> str:
    """Watch a stream until it ends or is stopped; return a message about its end.

    Args:
        direct: plain calls instead of Prefect flows.

    Raises:
        HomerError: the database is gone, or reading failed with it; the same command resumes.
    """
    video, workspace = ingestion.video, ingestion.workspace
    clips = ingestion.start_stream()
    listener.opened(video, clips, clips)
    # Clips are perceived in this process. The wait for a slot counts as lag of the clip, so less
    # is perceived afterwards.
    settings = WorkSettings(at_once=workspace.settings.work.at_once)
    pool = WorkerPool(settings)

    def follow_for_a_while(executor: Executor) -> bool:
        return follow_stream(ingestion, executor, pool, listener, RUN_CLIPS)

    api = None if direct else connect_to_prefect(workspace.home, listener.said)
    more = api is not None
    while more:
        try:
            more = run_reported(
                follow_for_a_while,
                workspace.store,
                api,
                flow="watch",
                run=f"{video.id} from clip {ingestion.state().clips}",
                tag=f"video:{video.id}",
                settings=settings,
            )
        except _server_errors() as error:
            # The stream must go on when the server of its runs is gone.
            listener.said(f"going on without Prefect: {type(error).__name__}")
            more = False
    with direct_executor() as executor:
        follow_stream(ingestion, executor, pool, listener)
        executor.run(BUILD_WINDOWS, ingestion=ingestion, final=True)
        with alerts_beside(workspace, executor):
            pass  # The last segments are judged.
    return ingestion.end()


def _server_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are raised when Prefect's server is gone."""
    # It is imported after Prefect's settings are set.
    from prefect.exceptions import PrefectException

    return (HTTPError, PrefectException)


def follow_stream(
    ingestion: StreamIngestion,
    executor: Executor,
    pool: WorkerPool,
    listener: Listener,
    most: int | None = None,
) -> bool:
    """Watch clip after clip, ``most`` at most; return whether more may come.

    While a clip is remembered the next one is perceived, if it has arrived: nothing waits for a
    clip that has not.
    """

    def start_after(clip: int, *, wait: bool) -> tuple[int, Callable[[], object]] | None:
        # One that an earlier run has not finished, else the next to come.
        following = next((taken for taken in ingestion.taken() if taken > clip), None)
        if following is None:
            following = ingestion.take_up(wait=wait)
        if following is None:
            return None
        return following, pool.start(executor, ingestion, following)

    watched = 0
    perceiving = start_after(-1, wait=True)
    with alerts_beside(ingestion.workspace, executor) as judge, pool.until_stopped():
        while perceiving is not None:
            clip, perceived = perceiving
            error = failure_of(perceived)
            watched += 1
            perceiving = start_after(clip, wait=False) if watched != most else None
            settle_clip(ingestion, executor, listener, clip, error)
            build_windows_if_due(ingestion, executor, clip)
            judge()
            if watched == most:
                return True
            perceiving = perceiving or start_after(clip, wait=True)
    return False
