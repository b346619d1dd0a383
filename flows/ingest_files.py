"""Watching many files: what is in memory already is passed over, a bad file stops no other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from domain.errors import HomerError, InputError
from domain.settings import CLUSTERS, Subtitles
from flows.ingest_steps import Listener, PlainSteps, watch
from flows.ingest_video import IngestResult, VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.reporting import connect, reporting
from flows.workspace import Workspace


@dataclass(frozen=True)
class FileOutcome:
    """What became of one file: watched, or the error that stopped it; neither: left alone."""

    path: Path
    watched: IngestResult | None = None
    error: HomerError | None = None

    @property
    def exit_code(self) -> int:
        """0 when every clip is in memory; 4 when some are left for another run."""
        if self.error is not None:
            return self.error.exit_code
        return 4 if self.watched and self.watched.failed else 0


def watch_files(
    desk: Workspace,
    paths: Iterable[Path],
    listener: Listener,
    *,
    direct: bool = False,
    again: bool = False,
    only: Collection[int] = (),
    subtitles: Subtitles | None = None,
) -> Iterator[FileOutcome]:
    """Watches file after file, giving what became of each.

    Args:
        desk: the store and the models.
        paths: media files.
        listener: is told how it goes.
        direct: plain calls instead of a Prefect flow.
        again: try clips too that failed for good.
        only: no other clips than these; empty: all.
        subtitles: whether subtitles that come with a file are used; None: as the settings say.

    Raises:
        SetupError: the database, a model or the pool of workers is missing, so no file can be
            watched.
    """
    with WorkerPool(desk.settings.work) as crew, desk.turn():
        conductor = _Conductor(desk, listener, crew, direct)
        for path in paths:
            try:
                with open_video(desk, path, again=again, only=only, subtitles=subtitles) as work:
                    outcome = FileOutcome(path, conductor.run(work))
            except InputError as error:
                outcome = FileOutcome(path, error=error)
            yield outcome


class _Conductor:
    """Runs the steps of each video, in a flow where Prefect's server comes up."""

    def __init__(self, desk: Workspace, listener: Listener, crew: WorkerPool, direct: bool) -> None:
        self._desk, self._listener, self._crew, self._direct = desk, listener, crew, direct
        self._api: str | None = None

    def run(self, work: VideoIngestion) -> IngestResult:
        """Watches what is left of the video; where nothing is, no server is needed."""
        if work.settled():
            return work.result()
        if not self._direct and self._api is None:
            self._api = connect(self._desk.home, self._listener.said)
            self._direct = self._api is None
        return self._plainly(work) if self._api is None else self._in_flow(work, self._api)

    def _plainly(self, work: VideoIngestion) -> IngestResult:
        if (where := self._desk.settings.work.where) in CLUSTERS:
            self._listener.said(
                f"without Prefect's server processes take the place of {where.title()}"
            )
        with PlainSteps(self._crew) as steps:
            return watch(work, steps, self._listener)

    def _in_flow(self, work: VideoIngestion, api: str) -> IngestResult:
        with reporting(self._desk.home, api):
            from flows.ingest import run

            return run(work, self._listener, self._crew)
