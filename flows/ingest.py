"""The ingest flow for Prefect: a run a video, a task a step, retries with back-off.

``--direct`` runs the same steps as plain calls (``flows.steps.PlainSteps``). Import this module
only after Prefect's environment is set (``flows.server.environment``).
"""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from prefect import flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import StateType
from prefect.futures import PrefectFuture
from prefect.states import Crashed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from domain.media import Video
from domain.settings import Subtitles
from flows.desk import open_desk
from flows.steps import BACK_OFF_S, Listener, Waitable, watch, worth_retrying
from flows.watching import Watched, Watching, open_video

RETRIES: dict[str, Any] = {
    "retries": len(BACK_OFF_S),
    "retry_delay_seconds": list(BACK_OFF_S),
    "retry_condition_fn": lambda _task, _run, state: worth_retrying(_error_of(state)),
    "cache_policy": NO_CACHE,
}

RUNNER = cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=1))
"""One clip is perceived at a time, beside the flow's own thread."""

_at_hand: ContextVar[tuple[Watching, Listener] | None] = ContextVar("at_hand", default=None)


@task(name="perceive", task_run_name="perceive {clip}", **RETRIES)
def perceive_clip(work: Watching, clip: int) -> None:
    """Decode a clip and find what it shows and says."""
    work.perceive(clip)


@task(name="remember", task_run_name="remember {clip}", **RETRIES)
def remember_clip(work: Watching, clip: int) -> None:
    """Store a perceived clip as memory."""
    work.remember(clip)


@task(name="weave", **RETRIES)
def weave_events(work: Watching, final: bool) -> None:
    """Bring the event graph up to date."""
    work.weave(final=final)


class PrefectSteps:
    """The steps as Prefect's tasks."""

    def perceive(self, work: Watching, clip: int) -> Waitable:
        """Perceive in the task runner's thread."""
        return _Beside(perceive_clip.submit(work, clip))

    def remember(self, work: Watching, clip: int) -> None:
        """Remember here and now."""
        remember_clip(work, clip)

    def weave(self, work: Watching, final: bool) -> None:
        """Weave here and now."""
        weave_events(work, final)


class _Beside:
    """A task that runs beside, whose error is raised as it was."""

    def __init__(self, future: PrefectFuture[None]) -> None:
        self._future = future

    def result(self) -> None:
        """Waits for the task."""
        self._future.result()


@flow(
    name="ingest",
    flow_run_name="{path}",
    task_runner=RUNNER,
    validate_parameters=False,
)
def ingest(path: str, profile: str | None = None, subtitles: Subtitles | None = None) -> Watched:
    """Watch the video of ``path``, going on where it stopped.

    Within a command the open video is at hand; elsewhere, as in a work pool, it is opened here.
    """
    found = _at_hand.get()
    if found is not None:
        return watch(found[0], PrefectSteps(), found[1])
    with open_desk(profile) as desk, open_video(desk, Path(path), subtitles=subtitles) as work:
        return watch(work, PrefectSteps(), Silent())


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


def run(work: Watching, listener: Listener) -> Watched:
    """A flow run for the open video; runs of it that were killed are marked as such first."""
    tag = f"video:{work.video.id}"
    mark_killed(tag)
    token = _at_hand.set((work, listener))
    try:
        with tags(tag):
            return ingest(work.source, work.desk.profile.name)
    finally:
        _at_hand.reset(token)


def mark_killed(tag: str) -> None:
    """A killed run stays "Running" for ever; we hold the video's lock, so it is dead."""
    running = FlowRunFilter(
        tags=FlowRunFilterTags(all_=[tag]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
    )
    with get_client(sync_client=True) as client:
        for dead in client.read_flow_runs(flow_run_filter=running):
            client.set_flow_run_state(dead.id, Crashed(message="its process is gone"), force=True)


def _error_of(state: Any) -> BaseException:
    found = state.result(raise_on_failure=False)
    return found if isinstance(found, BaseException) else RuntimeError("no error")
