"""The ingestion of a video as a Prefect flow of its own, for work pools.

A command runs the same steps in its process (``flows.watching``). Import this module only after
Prefect's environment is set (``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run

from domain.settings import Subtitles
from domain.watching import Watched
from flows.ingest_video import open_video
from flows.perception_workers import WorkerPool
from flows.prefect_executor import prefect_executor
from flows.watching import SilentListener, watch
from flows.workspace import open_workspace
from services.stale_runs import label_run
from store.files import set_private_umask
from store.home import Home
from telemetry.logs import set_up_telemetry
from telemetry.tracing import bind_ids


@flow(name="ingest", flow_run_name="{path}", validate_parameters=False)
def ingest(path: str, profile: str | None = None, subtitles: Subtitles | None = None) -> Watched:
    """Watch the video of ``path``, from the clip where an earlier run stopped."""
    label_run()
    with bind_ids(flow_run=str(flow_run.id)):
        set_private_umask()
        set_up_telemetry(Home.default())
        with (
            open_workspace(profile) as workspace,
            open_video(workspace, Path(path), subtitles=subtitles) as ingestion,
            WorkerPool(workspace.settings.work) as pool,
            prefect_executor(workspace.settings.work, workspace.home) as executor,
        ):
            return watch(ingestion, executor, pool, SilentListener())
