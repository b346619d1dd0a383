"""The flow of a live stream for Prefect: a run for every few clips, a task a step.

Import this module only after Prefect's environment is set (``services.prefect.environment``).
"""

from __future__ import annotations

from contextvars import ContextVar

from prefect import flow, tags

from flows.ingest import PrefectSteps, runner_of
from flows.ingest_steps import Listener
from flows.perception_workers import WorkerPool
from flows.stream.interrupted import settle_streams
from flows.stream.steps import RUN_CLIPS, follow, here
from flows.stream.watching import StreamIngestion
from services.library_tag import library_id, tag_of
from services.stale_runs import claim_run, mark_gone, mark_killed

_at_hand: ContextVar[tuple[StreamIngestion, Listener] | None] = ContextVar("live", default=None)


@flow(
    name="watch",
    flow_run_name="{video} from clip {first_clip}",
    validate_parameters=False,
)
def watch_clips(video: str, first_clip: int) -> bool:
    """Watch the next clips of the stream that is open in this process; whether more may come."""
    del video, first_clip
    claim_run()
    found = _at_hand.get()
    if found is None:
        raise RuntimeError("a stream is watched by the process that reads it: homer watch SOURCE")
    work, listener = found
    settings = here(work)
    with runner_of(settings, work.desk.home) as runner, WorkerPool(settings) as crew:
        return follow(work, PrefectSteps(crew, runner), listener, RUN_CLIPS)


def run(work: StreamIngestion, listener: Listener) -> bool:
    """A flow run for the next clips; runs that were killed are marked as such first."""
    tag = f"video:{work.video.id}"
    library = library_id(work.desk.store)
    mark_killed(library, tag)
    mark_gone(library)
    settle_streams(work.desk.store)
    token = _at_hand.set((work, listener))
    try:
        with tags(tag, tag_of(library)):
            return watch_clips(work.video.id, work.state().clips)
    finally:
        _at_hand.reset(token)
