"""The live stream as a Prefect flow: a run for every few clips, a task per step.

Import this module only after Prefect's environment is set (``services.prefect.environment``).
"""

from __future__ import annotations

from prefect import flow, tags

from flows.in_process_run import InProcess
from flows.ingest import PrefectSteps, runner_of
from flows.ingest_steps import Listener
from flows.perception_workers import WorkerPool
from flows.stream.interrupted import settle_streams
from flows.stream.steps import RUN_CLIPS, follow, here
from flows.stream.watching import StreamIngestion
from services.library_tag import library_id, tag_of
from services.stale_runs import claim_run, mark_gone, mark_killed


@flow(
    name="watch",
    flow_run_name="{video} from clip {first_clip}",
    validate_parameters=False,
)
def watch_clips(
    video: str, first_clip: int, opened: InProcess[tuple[StreamIngestion, Listener]]
) -> bool:
    """Watch the next clips of the stream that this process reads; return whether more may come."""
    del video, first_clip
    claim_run()
    ingestion, listener = opened.get()
    settings = here(ingestion)
    with runner_of(settings, ingestion.desk.home) as runner, WorkerPool(settings) as pool:
        return follow(ingestion, PrefectSteps(pool, runner), listener, RUN_CLIPS)


def run(ingestion: StreamIngestion, listener: Listener) -> bool:
    """Run the flow for the next clips; mark killed runs first."""
    tag = f"video:{ingestion.video.id}"
    library = library_id(ingestion.desk.store)
    mark_killed(library, tag)
    mark_gone(library)
    settle_streams(ingestion.desk.store)
    opened = InProcess((ingestion, listener))
    with tags(tag, tag_of(library)):
        return watch_clips(ingestion.video.id, ingestion.state().clips, opened)
