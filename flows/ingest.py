"""The ingestion as a Prefect flow: a run per video, a task per step, retries with back-off.

``--direct`` runs the same steps as plain calls (``flows.ingest_steps.PlainSteps``). Import this
module only after Prefect's environment is set (``services.prefect.prefect_environment``).
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
from flows.clip_memory import FileIngestion, Ingestion
from flows.cluster_runners import dask_runner, ray_runner
from flows.in_process_run import InProcess, InProcessVideo
from flows.ingest_steps import BACK_OFF_S, Listener, Waitable, watch, worth_retrying
from flows.ingest_video import IngestResult, VideoIngestion, open_video
from flows.perception_workers import WorkerPool, perception_slots
from flows.stream.interrupted import end_interrupted_streams
from flows.workspace import Workspace, open_workspace
from perception.worker import Delivery, Order, carry_out
from services.library_tag import library_id, library_tag_name
from services.stale_runs import label_run, mark_dead_runs, mark_killed_runs
from store.files import set_private_umask
from store.home import Home
from telemetry.ids import bind_ids
from telemetry.logging_setup import set_up_telemetry

Runner = TaskRunner[PrefectFuture[Any]]

RETRIES: dict[str, Any] = {
    "retries": len(BACK_OFF_S),
    "retry_delay_seconds": list(BACK_OFF_S),
    "retry_condition_fn": lambda _task, _run, state: worth_retrying(_error_in(state)),
    "cache_policy": NO_CACHE,
}


@task(name="perceive", task_run_name="perceive {clip}", **RETRIES)
def perceive_clip(ingestion: Ingestion, clip: int, pool: WorkerPool) -> None:
    """Decode a clip and perceive it."""
    pool.perceive(ingestion, clip)


@task(name="perceive", task_run_name="perceive {order.clip}", **RETRIES)
def perceive_order(order: Order, at_once: int | None = None) -> Delivery:
    """Perceive a clip in a cluster's worker, without the store, within its machine's limit."""
    with perception_slots(at_once).one():
        return carry_out(order)


@task(name="remember", task_run_name="remember {clip}", **RETRIES)
def remember_clip(ingestion: Ingestion, clip: int) -> None:
    """Store a perceived clip as memory."""
    ingestion.remember(clip)


@task(name="weave", **RETRIES)
def update_event_graph(ingestion: Ingestion, final: bool) -> None:
    """Update the event graph."""
    ingestion.weave(final=final)


class PrefectSteps:
    """The steps as Prefect tasks; clips are perceived in the tasks of a task runner."""

    def __init__(self, pool: WorkerPool, runner: Runner) -> None:
        self._pool, self._runner = pool, runner

    @property
    def ahead(self) -> int:
        """Return how many clips the workers need to have started."""
        return self._pool.ahead

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Submit the clip to the task runner, whose thread perceives or waits for a worker."""
        parameters = {"ingestion": ingestion, "clip": clip, "pool": self._pool}
        return _Submitted(self._runner.submit(perceive_clip, parameters))

    def remember(self, ingestion: Ingestion, clip: int) -> None:
        """Run the task in this thread."""
        remember_clip(ingestion, clip)

    def weave(self, ingestion: Ingestion, final: bool) -> None:
        """Run the task in this thread."""
        update_event_graph(ingestion, final)


class ClusterSteps(PrefectSteps):
    """The steps as Prefect tasks; clips are perceived in the workers of a cluster."""

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Submit the clip of a file to a worker of the cluster."""
        file = cast("FileIngestion", ingestion)
        at_once = file.desk.settings.work.at_once
        parameters = {"order": file.order(clip, self._pool.threads), "at_once": at_once}
        return _Submitted(self._runner.submit(perceive_order, parameters), file.take)


class _Submitted:
    """A submitted task. Waiting for it raises its error unchanged."""

    def __init__(
        self, future: PrefectFuture[Any], accept: Callable[[Any], None] | None = None
    ) -> None:
        self._future, self._accept = future, accept

    def result(self) -> None:
        """Wait for the task, and pass on its result."""
        delivery = self._future.result()
        if self._accept is not None:
            self._accept(delivery)


@contextmanager
def prefect_steps(workspace: Workspace, pool: WorkerPool) -> Iterator[PrefectSteps]:
    """Yield the steps, with the workers that the settings name."""
    settings = workspace.settings.work
    kind = ClusterSteps if settings.where in CLUSTERS else PrefectSteps
    with task_runner(settings, workspace.home) as runner:
        try:
            yield kind(pool, runner)
        except KeyboardInterrupt:
            # Before the runner is left, which waits for tasks that wait for workers.
            pool.close()
            raise


def task_runner(settings: WorkSettings, home: Home) -> AbstractContextManager[Runner]:
    """Return the task runner in which clips are perceived.

    Raises:
        SetupError: the settings name Dask or Ray, which is not installed.
    """
    if settings.where == "dask":
        return dask_runner(settings, home)
    if settings.where == "ray":
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
    """Watch the video of ``path``, from the clip where an earlier run stopped.

    For work pools: the video is opened here. A command runs `ingest_open_video`.
    """
    label_run()
    with bind_ids(flow_run=str(flow_run.id)):
        set_private_umask()
        set_up_telemetry(Home.default())
        with (
            open_workspace(profile) as workspace,
            open_video(workspace, Path(path), subtitles=subtitles) as ingestion,
            WorkerPool(workspace.settings.work) as pool,
            prefect_steps(workspace, pool) as steps,
        ):
            return watch(ingestion, steps, SilentListener())


@flow(name="ingest", flow_run_name="{video}", validate_parameters=False)
def ingest_open_video(video: str, opened: InProcess[InProcessVideo]) -> IngestResult:
    """Watch a video that is open in this process; ``video`` is its id, for the run's record."""
    del video
    label_run()
    current = opened.get()
    with (
        bind_ids(flow_run=str(flow_run.id)),
        prefect_steps(current.ingestion.desk, current.pool) as steps,
    ):
        return watch(current.ingestion, steps, current.listener)


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


def run_ingest_flow(
    ingestion: VideoIngestion, listener: Listener, pool: WorkerPool
) -> IngestResult:
    """Run the flow for the open video; mark killed runs first."""
    tag = f"video:{ingestion.video.id}"
    library = library_id(ingestion.desk.store)
    mark_killed_runs(library, tag)
    mark_dead_runs(library)
    end_interrupted_streams(ingestion.desk.store)
    opened = InProcess(InProcessVideo(ingestion, listener, pool))
    with tags(tag, library_tag_name(library)):
        # The server stores the parameters: after a deletion it has no more than the video's id.
        return ingest_open_video(ingestion.video.id, opened)


def _error_in(state: Any) -> BaseException:
    result = state.result(raise_on_failure=False)
    return result if isinstance(result, BaseException) else RuntimeError("no error")
