"""The live stream as a Prefect flow: a run for every few clips, a task per step.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from prefect import flow

from flows.ingest_steps import Listener, open_steps
from flows.perception_workers import WorkerPool
from flows.prefect_executor import InProcess, prefect_executor, runs_of_video
from flows.stream.steps import RUN_CLIPS, follow_stream, stream_work_settings
from flows.stream.watching import StreamIngestion
from services.stale_runs import label_run


@flow(
    name="watch",
    flow_run_name="{video} from clip {first_clip}",
    validate_parameters=False,
)
def watch_clips(
    video: str,  # noqa: ARG001 - names the run
    first_clip: int,  # noqa: ARG001 - names the run
    opened: InProcess[tuple[StreamIngestion, Listener]],
) -> bool:
    """Watch the next clips of the stream that this process reads; return whether more may come."""
    label_run()
    ingestion, listener = opened.get()
    settings = stream_work_settings(ingestion)
    executor, pool = prefect_executor(settings, ingestion.workspace.home), WorkerPool(settings)
    with pool, open_steps(executor, pool) as steps:
        return follow_stream(ingestion, steps, listener, RUN_CLIPS)


def run_stream_flow(ingestion: StreamIngestion, listener: Listener) -> bool:
    """Run the flow for the next clips."""
    opened = InProcess((ingestion, listener))
    with runs_of_video(ingestion.workspace.store, ingestion.video.id):
        return watch_clips(ingestion.video.id, ingestion.state().clips, opened)
