"""The live stream as a Prefect flow: a run for every few clips, a task per step.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from prefect import flow, tags

from flows.ingest_steps import Listener, open_steps
from flows.perception_workers import WorkerPool
from flows.prefect_executor import InProcess, prefect_executor
from flows.stream.interrupted import end_interrupted_streams
from flows.stream.steps import RUN_CLIPS, follow_stream, stream_work_settings
from flows.stream.watching import StreamIngestion
from services.library_tag import library_id, library_tag_name
from services.stale_runs import label_run, mark_dead_runs, mark_killed_runs


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
    executor, pool = prefect_executor(settings, ingestion.desk.home), WorkerPool(settings)
    with pool, open_steps(executor, pool) as steps:
        return follow_stream(ingestion, steps, listener, RUN_CLIPS)


def run_stream_flow(ingestion: StreamIngestion, listener: Listener) -> bool:
    """Run the flow for the next clips; mark killed runs first."""
    tag = f"video:{ingestion.video.id}"
    library = library_id(ingestion.desk.store)
    mark_killed_runs(library, tag)
    mark_dead_runs(library)
    end_interrupted_streams(ingestion.desk.store)
    opened = InProcess((ingestion, listener))
    with tags(tag, library_tag_name(library)):
        return watch_clips(ingestion.video.id, ingestion.state().clips, opened)
