"""Watching many files: finished videos are skipped, and a bad file does not stop the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial
from pathlib import Path

from domain.errors import InputError
from domain.ingesting import Watched
from domain.settings import CLUSTERS, Subtitles
from flows.build import build, check_builds
from flows.ingest_video import VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.reporting import connect_to_prefect, run_reported
from flows.watching import Listener, watch
from flows.workspace import Workspace
from models.retries import waiting_for_servers
from strategies.registry import find_strategy


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
