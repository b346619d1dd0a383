"""The steps of a live stream and their order, with Prefect if its server is available."""

from __future__ import annotations

from httpx import HTTPError

from domain.settings import WorkSettings
from flows.alert_delivery import alerts_beside
from flows.ingest_steps import (
    IngestSteps,
    Listener,
    build_windows_if_due,
    notify,
    open_direct_steps,
    settle_clip,
    wait_for_failure,
)
from flows.perception_workers import WorkerPool
from flows.reporting import connect_to_prefect, report_to_prefect
from flows.stream.watching import StreamIngestion

RUN_CLIPS = 10
"""Clips per flow run: a stream may last for months, and the record of a run must not."""


def watch_stream(ingestion: StreamIngestion, listener: Listener, *, direct: bool = False) -> str:
    """Watch a stream until it ends or is stopped; return a message about its end.

    Args:
        direct: plain calls instead of Prefect flows.

    Raises:
        HomerError: the database is gone, or reading failed with it; the same command resumes.
    """
    clips = ingestion.start_stream()
    listener.opened(ingestion.video, clips, clips)
    api = None if direct else connect_to_prefect(ingestion.workspace.home, listener.said)
    while api is not None and _run_in_flow(ingestion, listener, api):
        continue
    with open_direct_steps(WorkerPool(stream_work_settings(ingestion))) as steps:
        follow_stream(ingestion, steps, listener)
        steps.build_windows(ingestion, final=True)
        with alerts_beside(ingestion.workspace, steps.executor):
            pass  # The last segments are judged.
    return ingestion.end()


def stream_work_settings(ingestion: StreamIngestion) -> WorkSettings:
    """Return the settings of a stream's workers: clips are perceived in this process.

    The wait for a slot counts as lag of the clip, so less is perceived afterwards.
    """
    return WorkSettings(at_once=ingestion.workspace.settings.work.at_once)


def _run_in_flow(ingestion: StreamIngestion, listener: Listener, api: str) -> bool:
    """Run the flow once; return whether there may be another run."""
    with report_to_prefect(ingestion.workspace.home, api):
        # Prefect reads its settings when it is imported: now they are set.
        from flows.stream.live import run_stream_flow

        try:
            return run_stream_flow(ingestion, listener)
        except _server_errors() as error:
            # The stream must go on when the server of its runs is gone.
            listener.said(f"going on without Prefect: {type(error).__name__}")
            return False


def _server_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are raised when Prefect's server is gone."""
    # Like the flow, it is imported after Prefect's settings are set.
    from prefect.exceptions import PrefectException

    return (HTTPError, PrefectException)


def follow_stream(
    ingestion: StreamIngestion, steps: IngestSteps, listener: Listener, most: int | None = None
) -> bool:
    """Watch clip after clip, ``most`` at most; return whether more may come.

    While a clip is remembered the next one is perceived, if it has arrived: nothing waits for a
    clip that has not.
    """
    remaining = most
    # A clip that an earlier run has not finished, else the next one.
    taken = ingestion.taken()
    clip = taken[0] if taken else ingestion.take_up(wait=True)
    perceiving = steps.perceive(ingestion, clip) if clip is not None else None
    with alerts_beside(ingestion.workspace, steps.executor) as judge:
        while clip is not None:
            remaining = None if remaining is None else remaining - 1
            error = wait_for_failure(perceiving) if perceiving is not None else None
            following = _next(ingestion, clip, wait=False) if remaining != 0 else None
            perceiving = steps.perceive(ingestion, following) if following is not None else None
            error = settle_clip(ingestion, steps, clip, error)
            notify(listener, ingestion.video, clip, error)
            build_windows_if_due(ingestion, steps, clip)
            judge()
            if remaining == 0:
                return True
            if following is None:
                following = _next(ingestion, clip, wait=True)
                perceiving = steps.perceive(ingestion, following) if following is not None else None
            clip = following
    return False


def _next(ingestion: StreamIngestion, clip: int, *, wait: bool) -> int | None:
    """Return the clip after ``clip`` that an earlier run has not finished, else the next one."""
    later = (index for index in ingestion.taken() if index > clip)
    return next(later, None) or ingestion.take_up(wait=wait)
