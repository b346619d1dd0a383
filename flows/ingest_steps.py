"""The steps of an ingestion and their order, with or without Prefect; and which errors to retry."""

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
from flows.clip_memory import ClipFailed, Ingestion
from flows.ingest_video import IngestResult, VideoIngestion
from flows.perception_workers import WorkerPool
from telemetry import tracing
from telemetry.ingest_spans import ClipSpans

BACK_OFF_S = (1.0, 4.0, 15.0)
"""Seconds to wait before each retry of a step."""


class Listener(Protocol):
    """Receives the progress of an ingestion."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Note that a video of ``clips`` clips was opened; ``done`` of them are in memory."""

    def remembered(self, video: Video, clip: int) -> None:
        """Note that a clip is in memory."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Note that a clip is left for another run."""

    def said(self, text: str) -> None:
        """Show a message to a person."""


class Waitable(Protocol):
    """A step that runs concurrently; ``result`` waits for it and raises its error."""

    def result(self) -> Any:
        """Wait for the end of the step."""


class Steps(Protocol):
    """Runs the steps, each with its retries."""

    @property
    def ahead(self) -> int:
        """Return how many clips are started before one is remembered."""

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Start to perceive a clip, concurrently with the other steps."""

    def remember(self, ingestion: Ingestion, clip: int) -> None:
        """Store a perceived clip as memory."""

    def weave(self, ingestion: Ingestion, final: bool) -> None:
        """Update the event graph."""


def worth_retrying(error: BaseException) -> bool:
    """Check whether a retry may succeed: a model or the database was not available."""
    return isinstance(error, ModelError | DatabaseError) and not isinstance(
        error, ClipFailed | ReplayMiss
    )


def watch(ingestion: VideoIngestion, steps: Steps, listener: Listener) -> IngestResult:
    """Watch every clip that is not in memory yet, in order; some are perceived in advance.

    A clip whose model keeps failing is left for the next run, and the other clips are watched.

    Raises:
        DatabaseError: the database is gone; the same command resumes later.
    """
    with tracing.span(tracing.Work.FLOW, "ingest", video=ingestion.video.id) as flow:
        result = _watch(ingestion, steps, listener)
        flow.fields |= {"clips": result.clips, "fresh": result.fresh, "failed": result.failed}
    return result


def _watch(ingestion: VideoIngestion, steps: Steps, listener: Listener) -> IngestResult:
    pending = ingestion.begin()
    total = ingestion.state().clips
    listener.opened(ingestion.video, total, total - len(pending))
    for remark in ingestion.remarks:
        listener.said(remark)
    with ClipSpans(ingestion.video, ingestion.desk.settings.watch.clip_ms) as spans:
        for clip, error in _perceived_clips(ingestion, steps, spans, pending):
            error = error or spans.run(clip, try_to_remember, ingestion, steps, clip)
            if error is not None:
                ingestion.give_up(clip, error)
            spans.end(clip, error)
            _notify(ingestion.video, clip, error, listener)
            if (clip + 1) % ingestion.desk.settings.memory.patch_every == 0:
                steps.weave(ingestion, final=False)
        steps.weave(ingestion, final=ingestion.seen_to_the_end())
        return ingestion.finish()


def _notify(video: Video, clip: int, error: Exception | None, listener: Listener) -> None:
    if error is None:
        listener.remembered(video, clip)
    else:
        listener.failed(video, clip, error)


def _perceived_clips(
    ingestion: VideoIngestion, steps: Steps, spans: ClipSpans, clips: Iterable[int]
) -> Iterator[tuple[int, ModelError | None]]:
    """Yield each clip in order once it is perceived, with the model's error if it failed."""
    remaining = iter(clips)

    def start(clip: int) -> Waitable:
        return spans.run(clip, steps.perceive, ingestion, clip)

    ingestion.desk.give_way()
    # One more for each clip that is written at the same time as another.
    started = deque(
        (clip, start(clip)) for clip in islice(remaining, steps.ahead + ingestion.at_once - 1)
    )
    while started:
        ingestion.desk.give_way()
        clip, step = started.popleft()
        error = wait_for_failure(step)
        started.extend((after, start(after)) for after in islice(remaining, 1))
        yield clip, error


def wait_for_failure(step: Waitable) -> ModelError | None:
    """Wait for a step; return the model's error if it failed."""
    try:
        step.result()
    except ModelError as error:
        return error
    return None


def try_to_remember(ingestion: Ingestion, steps: Steps, clip: int) -> ModelError | None:
    """Store a clip as memory; return the error if it is left for another run."""
    try:
        steps.remember(ingestion, clip)
    except ModelError as error:
        return error
    return None


class PlainSteps:
    """The steps as plain calls, with the retries and the order of the flow, without a server.

    Args:
        pool: the perception workers, shared between videos; None is one worker of its own.
    """

    def __init__(self, pool: WorkerPool | None = None) -> None:
        self._pool = pool or WorkerPool(WorkSettings())
        self._threads = ThreadPoolExecutor(self._pool.workers, thread_name_prefix="perceive")

    @property
    def ahead(self) -> int:
        """Return how many clips the workers need to have started."""
        return self._pool.ahead

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Start a thread that perceives the clip or waits for a worker."""
        return self._threads.submit(
            copy_context().run, call_with_retries, self._pool.perceive, ingestion, clip
        )

    def remember(self, ingestion: Ingestion, clip: int) -> None:
        """Run the step in this thread."""
        call_with_retries(ingestion.remember, clip)

    def weave(self, ingestion: Ingestion, final: bool) -> None:
        """Run the step in this thread."""
        call_with_retries(lambda: ingestion.weave(final=final))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is KeyboardInterrupt:
            self._pool.close()
        # Ctrl-C does not wait for clips that will be perceived again anyway.
        self._threads.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)


def call_with_retries(step: Callable[..., None], *args: Any) -> None:
    """Run ``step``, and again after each back-off while its error is worth retrying."""
    for delay in BACK_OFF_S:
        try:
            return step(*args)
        except (ModelError, DatabaseError) as error:
            if not worth_retrying(error):
                raise
            time.sleep(delay)
    return step(*args)
