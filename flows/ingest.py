"""The ingest flow for Prefect: a run a video, a task a step, retries with back-off.

``--direct`` runs the same steps as plain calls (``flows.ingest_steps.PlainSteps``). Import this
module only after Prefect's environment is set (``services.prefect.environment``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

from prefect import flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from domain.media import Video
from domain.settings import CLUSTERS, Subtitles, WorkSettings
from flows import in_process_run
from flows.in_process_run import InProcessVideo
from flows.ingest_steps import BACK_OFF_S, Listener, Waitable, watch, worth_retrying
from flows.ingest_video import IngestResult, VideoIngestion, open_video
from flows.perception_workers import WorkerPool, places
from flows.stream.interrupted import settle_streams
from flows.workspace import Workspace, open_desk
from perception.worker import Delivery, Order, carry_out
from services.library_tag import library_id, tag_of
from services.stale_runs import claim_run, mark_gone, mark_killed
from store.home import Home
from store.private_files import keep_private
from telemetry import tracing
from telemetry.logging_setup import begin_to_tell

Runner = TaskRunner[PrefectFuture[Any]]

RETRIES: dict[str, Any] = {
    "retries": len(BACK_OFF_S),
    "retry_delay_seconds": list(BACK_OFF_S),
    "retry_condition_fn": lambda _task, _run, state: worth_retrying(_error_of(state)),
    "cache_policy": NO_CACHE,
}


@task(name="perceive", task_run_name="perceive {clip}", **RETRIES)
def perceive_clip(work: VideoIngestion, clip: int, crew: WorkerPool) -> None:
    """Decode a clip and find what it shows and says."""
    crew.perceive(work, clip)


@task(name="perceive", task_run_name="perceive {order.clip}", **RETRIES)
def perceive_order(order: Order, at_once: int | None = None) -> Delivery:
    """The same in a cluster's worker: it knows nothing of the store; its machine's places count."""
    with places(at_once).one():
        return carry_out(order)


@task(name="remember", task_run_name="remember {clip}", **RETRIES)
def remember_clip(work: VideoIngestion, clip: int) -> None:
    """Store a perceived clip as memory."""
    work.remember(clip)


@task(name="weave", **RETRIES)
def weave_events(work: VideoIngestion, final: bool) -> None:
    """Bring the event graph up to date."""
    work.weave(final=final)


class PrefectSteps:
    """The steps as Prefect's tasks; clips are perceived in the tasks of a runner of its own."""

    def __init__(self, crew: WorkerPool, runner: Runner) -> None:
        self._crew, self._runner = crew, runner

    @property
    def ahead(self) -> int:
        """As many clips as the workers need."""
        return self._crew.ahead

    def perceive(self, work: VideoIngestion, clip: int) -> Waitable:
        """Perceive in one of the task runner's threads, or wait there for a worker elsewhere."""
        given = {"work": work, "clip": clip, "crew": self._crew}
        return _Beside(self._runner.submit(perceive_clip, given))

    def remember(self, work: VideoIngestion, clip: int) -> None:
        """Remember here and now."""
        remember_clip(work, clip)

    def weave(self, work: VideoIngestion, final: bool) -> None:
        """Weave here and now."""
        weave_events(work, final)


class ClusterSteps(PrefectSteps):
    """The steps as Prefect's tasks; those that perceive run in the workers of a cluster."""

    def perceive(self, work: VideoIngestion, clip: int) -> Waitable:
        """Perceive in one of its workers."""
        at_once = work.desk.settings.work.at_once
        given = {"order": work.order(clip, self._crew.threads), "at_once": at_once}
        return _Beside(self._runner.submit(perceive_order, given), work.take)


class _Beside:
    """A task that runs beside, whose error is raised as it was."""

    def __init__(
        self, future: PrefectFuture[Any], take: Callable[[Any], None] | None = None
    ) -> None:
        self._future, self._take = future, take

    def result(self) -> None:
        """Waits for the task, and takes what it brings."""
        brought = self._future.result()
        if self._take is not None:
            self._take(brought)


@contextmanager
def steps_of(desk: Workspace, crew: WorkerPool) -> Iterator[PrefectSteps]:
    """The steps, with the workers that the settings name."""
    settings = desk.settings.work
    kind = ClusterSteps if settings.where in CLUSTERS else PrefectSteps
    with runner_of(settings, desk.home) as runner:
        try:
            yield kind(crew, runner)
        except KeyboardInterrupt:
            # First, since leaving the runner waits for tasks that wait for workers.
            crew.close()
            raise


def runner_of(settings: WorkSettings, home: Home) -> AbstractContextManager[Runner]:
    """The task runner in which clips are perceived.

    Raises:
        SetupError: it is to be Dask's or Ray's, which is not installed.
    """
    if settings.where == "dask":
        from flows.dask_runner import dask_runner

        return dask_runner(settings, home)
    if settings.where == "ray":
        from flows.ray_runner import ray_runner

        return ray_runner(settings)
    return cast("Runner", ThreadPoolTaskRunner[Any](max_workers=settings.workers))


@flow(
    name="ingest",
    flow_run_name="{path}",
    validate_parameters=False,
)
def ingest(
    path: str, profile: str | None = None, subtitles: Subtitles | None = None
) -> IngestResult:
    """Watch the video of ``path``, going on where it stopped.

    Within a command the open video is at hand; elsewhere, as in a work pool, it is opened here.
    """
    claim_run()
    found = in_process_run.found()
    with tracing.within(flow_run=str(flow_run.id)):
        if found is not None:
            with steps_of(found.work.desk, found.crew) as steps:
                return watch(found.work, steps, found.listener)
        keep_private()
        begin_to_tell(Home.default())
        with (
            open_desk(profile) as desk,
            open_video(desk, Path(path), subtitles=subtitles) as work,
            WorkerPool(desk.settings.work) as crew,
            steps_of(desk, crew) as steps,
        ):
            return watch(work, steps, Silent())


class Silent:
    """Nobody is watching the watching."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Says nothing."""

    def remembered(self, video: Video, clip: int) -> None:
        """Says nothing."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Says nothing: the store has the error."""

    def said(self, text: str) -> None:
        """Says nothing."""


def run(work: VideoIngestion, listener: Listener, crew: WorkerPool) -> IngestResult:
    """A flow run for the open video; runs that were killed are marked as such first."""
    tag = f"video:{work.video.id}"
    library = library_id(work.desk.store)
    mark_killed(library, tag)
    mark_gone(library)
    settle_streams(work.desk.store)
    with in_process_run.within(InProcessVideo(work, listener, crew)), tags(tag, tag_of(library)):
        # The server keeps what it is given: of a video that is deleted, no more than its id.
        return ingest(work.video.id, work.desk.profile.name)


def _error_of(state: Any) -> BaseException:
    found = state.result(raise_on_failure=False)
    return found if isinstance(found, BaseException) else RuntimeError("no error")
