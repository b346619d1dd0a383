"""The ingestion as a Prefect flow: a run per video, a task per step.

``--direct`` runs the same steps as plain calls (``flows.executors.DirectExecutor``). Import this
module only after Prefect's environment is set (``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run

from domain.settings import CLUSTERS, Subtitles
from flows.ingest_steps import (
    ClusterSteps,
    IngestSteps,
    Listener,
    SilentListener,
    open_steps,
    watch,
)
from flows.ingest_video import IngestResult, VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.prefect_executor import InProcess, prefect_executor, runs_of_video
from flows.workspace import open_workspace
from services.stale_runs import label_run
from store.files import set_private_umask
from store.home import Home
from telemetry.logging_setup import set_up_telemetry
from telemetry.tracing import bind_ids


def _watch(ingestion: VideoIngestion, listener: Listener, pool: WorkerPool) -> IngestResult:
    """Watch an open video in tasks of this flow run."""
    workspace = ingestion.workspace
    work = workspace.settings.work
    kind = ClusterSteps if work.where in CLUSTERS else IngestSteps
    with open_steps(prefect_executor(work, workspace.home), pool, kind) as steps:
        return watch(ingestion, steps, listener)


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
        ):
            return _watch(ingestion, SilentListener(), pool)


@flow(name="ingest", flow_run_name="{video}", validate_parameters=False)
def ingest_open_video(
    video: str,  # noqa: ARG001 - names the run
    opened: InProcess[tuple[VideoIngestion, Listener, WorkerPool]],
) -> IngestResult:
    """Watch a video that is open in this process."""
    label_run()
    with bind_ids(flow_run=str(flow_run.id)):
        ingestion, listener, pool = opened.get()
        return _watch(ingestion, listener, pool)


def run_ingest_flow(
    ingestion: VideoIngestion, listener: Listener, pool: WorkerPool
) -> IngestResult:
    """Run the flow for the open video."""
    opened = InProcess((ingestion, listener, pool))
    with runs_of_video(ingestion.workspace.store, ingestion.video.id):
        # The server stores the parameters: after a deletion it has no more than the video's id.
        return ingest_open_video(ingestion.video.id, opened)
