"""The watching of a video, from its first clip to the end, and of many files, one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from domain.errors import InputError, ModelError
from domain.media import Video
from domain.settings import CLUSTERS, Subtitles
from domain.watching import Watched
from flows.alert_delivery import alerts_beside
from flows.build import build, check_builds
from flows.clip_memory import Ingestion
from flows.executors import Executor, Step, connect_to_prefect, run_reported
from flows.ingest_video import VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.workspace import Workspace
from models.retries import waiting_for_servers
from strategies.registry import find_strategy
from telemetry import tracing
from telemetry.tracing import ClipSpans


class Listener(Protocol):
    """Receives the progress of an ingestion."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Note that a video of ``clips`` clips was opened; ``done`` of them are in memory."""

    def remembered(self, video: Video, clip: int) -> None:
        """Note that a clip is in memory."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Note that a clip is left for another run."""

    def said(self, text: str) -> None:
        """Show a message to a person."""


class SilentListener:
    """A listener that ignores everything."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Ignore it."""

    def remembered(self, video: Video, clip: int) -> None:
        """Ignore it."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Ignore it: the store has the error."""

    def said(self, text: str) -> None:
        """Ignore it."""


REMEMBER = Step(
    name="remember",
    run_name="remember {clip}",
    call=lambda ingestion, clip: ingestion.remember(clip),
)
BUILD_WINDOWS = Step(
    name="build windows", call=lambda ingestion, final: ingestion.build_windows(final=final)
)


def watch(
    ingestion: VideoIngestion, executor: Executor, pool: WorkerPool, listener: Listener
) -> Watched:
    """Watch every clip that is not in memory yet, in order; some are perceived in advance.

    A clip whose model keeps failing is left for the next run, and the other clips are watched.
    While a model's server is out, the run waits.

    Args:
        executor: runs each step, with retries.

    Raises:
        DatabaseError: the database is gone; the same command resumes later.
        SetupError: a model is not to be had: its server was out for an hour, or refuses the key.
    """
    video, workspace = ingestion.video, ingestion.workspace
    with (
        tracing.span(tracing.Work.FLOW, "ingest", video=video.id) as flow,
        waiting_for_servers(listener.said),
    ):
        pending = ingestion.begin()
        total = ingestion.state().clips
        listener.opened(video, total, total - len(pending))
        for remark in ingestion.remarks:
            listener.said(remark)
        with (
            alerts_beside(workspace, executor) as judge,
            ClipSpans(video, workspace.settings.watch.clip_ms) as spans,
            pool.until_stopped(),
        ):
            left = iter(pending)

            def start(clip: int) -> tuple[int, Callable[[], object]]:
                return clip, spans.run(clip, pool.start, executor, ingestion, clip)

            workspace.give_way()
            # One more for each clip that is written at the same time as another.
            perceiving = deque(map(start, islice(left, pool.ahead + ingestion.at_once - 1)))
            while perceiving:
                workspace.give_way()
                clip, perceived = perceiving.popleft()
                error = failure_of(perceived)
                perceiving.extend(map(start, islice(left, 1)))
                error = spans.run(clip, settle_clip, ingestion, executor, listener, clip, error)
                spans.end(clip, error)
                build_windows_if_due(ingestion, executor, clip)
                judge()
            executor.run(BUILD_WINDOWS, ingestion=ingestion, final=ingestion.seen_to_the_end())
            result = ingestion.finish()
        flow.fields |= {"clips": result.clips, "fresh": result.fresh, "failed": result.failed}
    return result


def failure_of(perceived: Callable[[], object]) -> ModelError | None:
    """Wait until a clip is perceived; return the model's error if it failed."""
    try:
        perceived()
    except ModelError as error:
        return error
    return None


def settle_clip(
    ingestion: Ingestion,
    executor: Executor,
    listener: Listener,
    clip: int,
    error: ModelError | None,
) -> ModelError | None:
    """Store a clip as memory, or mark it as failed; return the error if it is left.

    ``error`` is the one with which it was perceived, if any.
    """
    if error is None:
        try:
            executor.run(REMEMBER, ingestion=ingestion, clip=clip)
        except ModelError as raised:
            error = raised
    if error is None:
        listener.remembered(ingestion.video, clip)
    else:
        ingestion.give_up(clip, error)
        listener.failed(ingestion.video, clip, error)
    return error


def build_windows_if_due(ingestion: Ingestion, executor: Executor, clip: int) -> None:
    """Build what is due once the last clip of a window is settled."""
    if (clip + 1) % ingestion.workspace.settings.memory.patch_every == 0:
        executor.run(BUILD_WINDOWS, ingestion=ingestion, final=False)


# Watching many files: finished videos are skipped, and a bad file does not stop the others.


def watch_files(
    workspace: Workspace,
    paths: Iterable[Path],
    listener: Listener,
    *,
    direct: bool = False,
    again: bool = False,
    only: Collection[int] = (),
    subtitles: Subtitles | None = None,
    audio_track: int | None = None,
) -> Iterator[Watched]:
    """Watch file after file, and yield the result of each.

    Args:
        direct: plain calls instead of a Prefect flow.
        again: also retry clips that failed for good.
        only: numbers of the clips to watch; empty: all.
        subtitles: whether subtitles that come with a file are used; None: use the settings.
        audio_track: the number of the track of sound to hear; None: the one with most speech.

    Raises:
        SetupError: the database, a model or the worker pool is missing, so no file can be watched.
        InputError: a strategy of the settings is not there, or builds no memory.
    """
    builders = [find_strategy(name) for name in workspace.settings.memory.strategies]
    for builder in builders:
        check_builds(builder)
    # Asked for once, when there is something to watch.
    server = cache(lambda: None if direct else connect_to_prefect(workspace.home, listener.said))
    with WorkerPool(workspace.settings.work) as pool, workspace.turn():
        for path in paths:
            try:
                with open_video(
                    workspace,
                    path,
                    again=again,
                    only=only,
                    subtitles=subtitles,
                    audio_track=audio_track,
                ) as ingestion:
                    if ingestion.settled():
                        result = ingestion.result()
                    else:
                        result = _watch_open(ingestion, pool, listener, server())
                for builder in builders:
                    with waiting_for_servers(listener.said):
                        made = build(workspace, result.video, builder, lambda *_: None)
                    if made.remark:
                        listener.said(f"{made.video.title}: {made.remark}")
                    if made.clips:
                        listener.said(f"{made.video.title}: the memory of {builder.name} is built")
            except InputError as error:
                result = Watched.failing(str(path), error)
            yield result


def _watch_open(
    ingestion: VideoIngestion, pool: WorkerPool, listener: Listener, api: str | None
) -> Watched:
    """Watch the remaining clips of a video, reported to Prefect's ``api`` if there is one."""
    workspace, video = ingestion.workspace, ingestion.video.id
    work = workspace.settings.work
    if api is None and work.where in CLUSTERS:
        listener.said(f"without Prefect's server processes take the place of {work.where.title()}")
    return run_reported(
        partial(watch, ingestion, pool=pool, listener=listener),
        workspace.store,
        api,
        flow="ingest",
        run=video,
        tag=f"video:{video}",
        settings=work,
    )
