"""The order of the steps of a live stream, and who runs them: Prefect where it is there."""

from __future__ import annotations

from domain.errors import ModelError
from domain.settings import WorkSettings
from flows.ingest_steps import Listener, PlainSteps, Steps, failure_of, remember_error
from flows.perception_workers import WorkerPool
from flows.reporting import connect, reporting
from flows.stream.watching import StreamIngestion

RUN_CLIPS = 10
"""Clips a flow run: a stream may last for months, and a run's record should not."""


def watch_stream(work: StreamIngestion, listener: Listener, *, direct: bool = False) -> str:
    """Watches a stream until it ends or is stopped; returns what is to be said of its end.

    Args:
        work: the open stream.
        listener: is told how it goes.
        direct: plain calls instead of Prefect flows.

    Raises:
        HomerError: the database is gone, or reading ended with it; the same command goes on.
    """
    clips = work.begin_stream()
    listener.opened(work.video, clips, clips)
    api = None if direct else connect(work.desk.home, listener.said)
    while api is not None and _in_flow(work, listener, api):
        continue
    with PlainSteps(WorkerPool(here(work))) as steps:
        follow(work, steps, listener)
        steps.weave(work, final=True)
    return work.end()


def here(work: StreamIngestion) -> WorkSettings:
    """A clip of a stream is in this process, and perceived here, where the machine has a place.

    To wait for one is part of the clip's lag, so less is looked at afterwards.
    """
    return WorkSettings(at_once=work.desk.settings.work.at_once)


def _in_flow(work: StreamIngestion, listener: Listener, api: str) -> bool:
    """One flow run; whether there may be another."""
    with reporting(work.desk.home, api):
        from flows.stream.live import run

        try:
            return run(work, listener)
        except _away() as error:
            # A stream is not to end because the server that lists its runs did.
            listener.said(f"going on without Prefect: {type(error).__name__}")
            return False


def _away() -> tuple[type[Exception], ...]:
    """What it looks like where Prefect's server has gone."""
    from httpx import HTTPError
    from prefect.exceptions import PrefectException

    return (HTTPError, PrefectException)


def follow(
    work: StreamIngestion, steps: Steps, listener: Listener, most: int | None = None
) -> bool:
    """Watches clip after clip, at most so many; whether more may come.

    While a clip is remembered the next is perceived, if it is there already: nothing waits for a
    clip that has yet to come.
    """
    left = most
    clip = _first(work)
    ahead = steps.perceive(work, clip) if clip is not None else None
    while clip is not None:
        left = None if left is None else left - 1
        error = failure_of(ahead) if ahead is not None else None
        following = _next(work, clip, wait=False) if left != 0 else None
        ahead = steps.perceive(work, following) if following is not None else None
        _finish(work, steps, listener, clip, error)
        if left == 0:
            return True
        if following is None:
            following = _next(work, clip, wait=True)
            ahead = steps.perceive(work, following) if following is not None else None
        clip = following
    return False


def _first(work: StreamIngestion) -> int | None:
    """A clip that an earlier run left in hand, else the next to come."""
    taken = work.taken()
    return taken[0] if taken else work.take_up(wait=True)


def _next(work: StreamIngestion, clip: int, *, wait: bool) -> int | None:
    """The clip after ``clip``: one that an earlier run left in hand, else the next to come."""
    taken = (one for one in work.taken() if one > clip)
    return next(taken, None) or work.take_up(wait=wait)


def _finish(
    work: StreamIngestion, steps: Steps, listener: Listener, clip: int, error: ModelError | None
) -> None:
    error = error or remember_error(work, steps, clip)
    if error is None:
        listener.remembered(work.video, clip)
    else:
        work.give_up(clip, error)
        listener.failed(work.video, clip, error)
    if (clip + 1) % work.desk.settings.memory.patch_every == 0:
        steps.weave(work, final=False)
