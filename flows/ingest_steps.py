"""The order of the steps of watching, whoever runs them; and what is worth trying again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from types import TracebackType
from typing import Any, Protocol, Self

from domain.errors import DatabaseError, ModelError, ReplayMiss
from domain.media import Video
from domain.settings import WorkSettings
from flows.ingest_video import ClipLeft, IngestResult, VideoIngestion
from flows.perception_workers import WorkerPool
from telemetry import tracing
from telemetry.ingest_spans import ClipSpans

BACK_OFF_S = (1.0, 4.0, 15.0)
"""How long to wait before each new try of a step."""


class Listener(Protocol):
    """Is told how the watching goes."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """A video of ``clips`` clips is taken up; ``done`` of them are in memory already."""

    def remembered(self, video: Video, clip: int) -> None:
        """A clip is in memory."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """A clip is left for another run."""

    def said(self, text: str) -> None:
        """Anything else a person should know."""


class Waitable(Protocol):
    """A step that runs beside; ``result`` waits for it and raises what it raised."""

    def result(self) -> Any:
        """Waits for the end of the step."""


class Steps(Protocol):
    """Runs the steps, each with its retries."""

    @property
    def ahead(self) -> int:
        """How many clips are begun to be perceived before one is remembered."""

    def perceive(self, work: VideoIngestion, clip: int) -> Waitable:
        """Begin to perceive a clip beside the other steps."""

    def remember(self, work: VideoIngestion, clip: int) -> None:
        """Remember a perceived clip."""

    def weave(self, work: VideoIngestion, final: bool) -> None:
        """Bring the event graph up to date."""


def worth_retrying(error: BaseException) -> bool:
    """Whether the same step may succeed a moment later: a model or the database was away."""
    return isinstance(error, ModelError | DatabaseError) and not isinstance(
        error, ClipLeft | ReplayMiss
    )


def watch(work: VideoIngestion, steps: Steps, listener: Listener) -> IngestResult:
    """Every clip that is not in memory yet, in order; perceiving runs some clips ahead.

    A clip whose model fails again and again is left for the next run, and the rest goes on.

    Raises:
        DatabaseError: the database is gone; the same command goes on later.
    """
    with tracing.span(tracing.Work.FLOW, "ingest", video=work.video.id) as flow:
        watched = _watch(work, steps, listener)
        flow.fields |= {"clips": watched.clips, "fresh": watched.fresh, "failed": watched.failed}
    return watched


def _watch(work: VideoIngestion, steps: Steps, listener: Listener) -> IngestResult:
    pending = work.begin()
    total = work.state().clips
    listener.opened(work.video, total, total - len(pending))
    for remark in work.remarks:
        listener.said(remark)
    with ClipSpans(work.video, work.desk.settings.watch.clip_ms) as spans:
        for clip, error in _perceived(work, steps, spans, pending):
            error = error or spans.during(clip, remember_error, work, steps, clip)
            if error is not None:
                work.give_up(clip, error)
            spans.end(clip, error)
            _tell(work.video, clip, error, listener)
            if (clip + 1) % work.desk.settings.memory.patch_every == 0:
                steps.weave(work, final=False)
        steps.weave(work, final=work.seen_to_the_end())
        return work.finish()


def _tell(video: Video, clip: int, error: Exception | None, listener: Listener) -> None:
    if error is None:
        listener.remembered(video, clip)
    else:
        listener.failed(video, clip, error)


def _perceived(
    work: VideoIngestion, steps: Steps, spans: ClipSpans, clips: Iterable[int]
) -> Iterator[tuple[int, ModelError | None]]:
    """Each clip in order once it is perceived, and why it is not; others are begun meanwhile."""
    coming = iter(clips)

    def begin(clip: int) -> Waitable:
        return spans.during(clip, steps.perceive, work, clip)

    work.desk.give_way()
    # One more for each clip that is written beside another.
    begun = deque((clip, begin(clip)) for clip in islice(coming, steps.ahead + work.at_once - 1))
    while begun:
        work.desk.give_way()
        clip, step = begun.popleft()
        error = failure_of(step)
        begun.extend((after, begin(after)) for after in islice(coming, 1))
        yield clip, error


def failure_of(step: Waitable) -> ModelError | None:
    """Waits for a step; the model's failure that it ended with, if any."""
    try:
        step.result()
    except ModelError as error:
        return error
    return None


def remember_error(work: VideoIngestion, steps: Steps, clip: int) -> ModelError | None:
    """Remembers a clip; the failure because of which it is left, if any."""
    try:
        steps.remember(work, clip)
    except ModelError as error:
        return error
    return None


class PlainSteps:
    """Plain calls, with the retries and the order of the flow, and no server.

    Args:
        crew: who perceives, lent by whoever watches several videos; None is one worker in here.
    """

    def __init__(self, crew: WorkerPool | None = None) -> None:
        self._crew = crew or WorkerPool(WorkSettings())
        self._beside = ThreadPoolExecutor(self._crew.workers, thread_name_prefix="perceive")

    @property
    def ahead(self) -> int:
        """As many clips as the workers need."""
        return self._crew.ahead

    def perceive(self, work: VideoIngestion, clip: int) -> Waitable:
        """Perceive in a thread, or wait there for a worker elsewhere."""
        return self._beside.submit(copy_context().run, patiently, self._crew.perceive, work, clip)

    def remember(self, work: VideoIngestion, clip: int) -> None:
        """Remember here and now."""
        patiently(work.remember, clip)

    def weave(self, work: VideoIngestion, final: bool) -> None:
        """Weave here and now."""
        patiently(lambda: work.weave(final=final))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is KeyboardInterrupt:
            self._crew.close()
        # Whoever pressed Ctrl-C does not wait for a clip that will be perceived again anyway.
        self._beside.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)


def patiently(step: Callable[..., None], *args: Any) -> None:
    """Runs ``step``, and again after each back-off while its error is worth retrying."""
    for delay in BACK_OFF_S:
        try:
            return step(*args)
        except (ModelError, DatabaseError) as error:
            if not worth_retrying(error):
                raise
            time.sleep(delay)
    return step(*args)
