"""Watching many files: finished videos are skipped, and a bad file does not stop the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.errors import HomerError, InputError
from domain.settings import CLUSTERS, Subtitles
from flows.build import build, check_builds
from flows.ingest_steps import Listener, open_direct_steps, watch
from flows.ingest_video import IngestResult, VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.reporting import connect_to_prefect, report_to_prefect
from flows.workspace import Workspace
from models.retries import waiting_for_servers
from strategies.registry import find_strategy


@dataclass(frozen=True)
class FileOutcome:
    """The result of one file: watched, or the error that stopped it; neither if it was skipped."""

    path: Path
    watched: IngestResult | None = None
    error: HomerError | None = None

    @property
    def exit_code(self) -> int:
        """Return 0 when every clip is in memory, 4 when some are left, else the error's code."""
        if self.error is not None:
            return self.error.exit_code
        return 4 if self.watched and self.watched.failed else 0


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
) -> Iterator[FileOutcome]:
    """Watch file after file, and yield the result of each.

    Args:
        workspace: the store and the models.
        paths: media files.
        listener: receives the progress.
        direct: plain calls instead of a Prefect flow.
        again: also retry clips that failed for good.
        only: numbers of the clips to watch; empty: all.
        subtitles: whether subtitles that come with a file are used; None: use the settings.
        audio_track: the number of the track of sound to hear; None: the one with most speech.

    Raises:
        SetupError: the database, a model or the worker pool is missing, so no file can be watched.
        InputError: a strategy of the settings is not there, or builds no memory.
    """
    for name in workspace.settings.memory.strategies:
        check_builds(find_strategy(name))
    with WorkerPool(workspace.settings.work) as pool, workspace.turn():
        runner = _IngestionRunner(workspace, listener, pool, direct)
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
                    outcome = FileOutcome(path, runner.run(ingestion))
                _build_memories(workspace, outcome, listener)
            except InputError as error:
                outcome = FileOutcome(path, error=error)
            yield outcome


def _build_memories(workspace: Workspace, outcome: FileOutcome, listener: Listener) -> None:
    """Build the memory of the strategies of the settings, of a video that was watched."""
    if outcome.watched is None:
        return
    for name in workspace.settings.memory.strategies:
        with waiting_for_servers(listener.said):
            made = build(workspace, outcome.watched.video.id, find_strategy(name), lambda *_: None)
        if made.remark:
            listener.said(f"{made.video.title}: {made.remark}")
        if made.clips:
            listener.said(f"{made.video.title}: the memory of {name} is built")


class _IngestionRunner:
    """Runs the steps of each video, in a flow if Prefect's server is available."""

    def __init__(
        self, workspace: Workspace, listener: Listener, pool: WorkerPool, direct: bool
    ) -> None:
        self._workspace, self._listener, self._pool, self._direct = (
            workspace,
            listener,
            pool,
            direct,
        )
        self._api: str | None = None

    def run(self, ingestion: VideoIngestion) -> IngestResult:
        """Watch the remaining clips of the video; without any, no server is needed."""
        if ingestion.settled():
            return ingestion.result()
        if not self._direct and self._api is None:
            self._api = connect_to_prefect(self._workspace.home, self._listener.said)
            self._direct = self._api is None
        return (
            self._run_plainly(ingestion)
            if self._api is None
            else self._run_in_flow(ingestion, self._api)
        )

    def _run_plainly(self, ingestion: VideoIngestion) -> IngestResult:
        if (where := self._workspace.settings.work.where) in CLUSTERS:
            self._listener.said(
                f"without Prefect's server processes take the place of {where.title()}"
            )
        with open_direct_steps(self._pool) as steps:
            return watch(ingestion, steps, self._listener)

    def _run_in_flow(self, ingestion: VideoIngestion, api: str) -> IngestResult:
        with report_to_prefect(self._workspace.home, api):
            # Prefect reads its settings when it is imported: now they are set.
            from flows.ingest import run_ingest_flow

            return run_ingest_flow(ingestion, self._listener, self._pool)
