"""The steps of an ingestion and their order, with or without Prefect."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Protocol, cast

from domain.errors import ModelError
from domain.media import Video
from domain.settings import WorkSettings
from flows.alert_delivery import alerts_beside
from flows.clip_memory import Ingestion
from flows.executors import DirectExecutor, Executor, Step, Waitable
from flows.ingest_video import IngestResult, VideoIngestion
from flows.perception_workers import WorkerPool, perception_slots
from models.retries import waiting_for_servers
from perception.worker import Delivery, Order, carry_out
from telemetry import tracing
from telemetry.ingest_spans import ClipSpans


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


class SilentListener:
    """A listener that ignores everything."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Ignore it."""

    def remembered(self, video: Video, clip: int) -> None:
        """Ignore it."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Ignore it: the store has the error."""

    def said(self, text: str) -> None:
        """Ignore it."""


def _perceive_order(order: Order, at_once: int | None = None) -> Delivery:
    """Perceive a clip in a cluster's worker, without the store, within its machine's limit."""
    with perception_slots(at_once).acquire():
        return carry_out(order)


PERCEIVE = Step(
    name="perceive",
    run_name="perceive {clip}",
    call=lambda ingestion, clip, pool: pool.perceive(ingestion, clip),
)
PERCEIVE_ORDER = Step(name="perceive", run_name="perceive {order.clip}", call=_perceive_order)
REMEMBER = Step(
    name="remember",
    run_name="remember {clip}",
    call=lambda ingestion, clip: ingestion.remember(clip),
)
BUILD_WINDOWS = Step(
    name="build windows", call=lambda ingestion, final: ingestion.build_windows(final=final)
)


class IngestSteps:
    """The steps of an ingestion, in the executor that they are given.

    Args:
        executor: runs each step, with retries.
        pool: the perception workers.
    """

    def __init__(self, executor: Executor, pool: WorkerPool) -> None:
        self.executor, self._pool = executor, pool

    @property
    def ahead(self) -> int:
        """Return how many clips are started before one is remembered."""
        return self._pool.ahead

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Start a step that perceives the clip or waits for a worker."""
        return self.executor.start(PERCEIVE, ingestion=ingestion, clip=clip, pool=self._pool)

    def remember(self, ingestion: Ingestion, clip: int) -> None:
        """Store a perceived clip as memory."""
        self.executor.run(REMEMBER, ingestion=ingestion, clip=clip)

    def build_windows(self, ingestion: Ingestion, final: bool) -> None:
        """Build what is due of memories that are built by windows."""
        self.executor.run(BUILD_WINDOWS, ingestion=ingestion, final=final)


class ClusterSteps(IngestSteps):
    """The steps of the ingestion of a file, whose clips a cluster's workers perceive."""

    def perceive(self, ingestion: Ingestion, clip: int) -> Waitable:
        """Start a step that perceives the clip in a worker of the cluster."""
        file = cast("VideoIngestion", ingestion)
        order, at_once = file.order(clip, self._pool.threads), file.workspace.settings.work.at_once
        step = self.executor.start(PERCEIVE_ORDER, order=order, at_once=at_once)
        return _DeliveredStep(step, file)


class _DeliveredStep:
    """A started step whose result goes to the ingestion."""

    def __init__(self, step: Waitable, file: VideoIngestion) -> None:
        self._step, self._file = step, file

    def result(self) -> None:
        """Wait for the step, and pass on its result."""
        self._file.take(self._step.result())


@contextmanager
def open_steps(
    executor: AbstractContextManager[Executor],
    pool: WorkerPool,
    kind: type[IngestSteps] = IngestSteps,
) -> Iterator[IngestSteps]:
    """Yield the steps of an ingestion; Ctrl-C stops the workers."""
    with executor as opened:
        try:
            yield kind(opened, pool)
        except KeyboardInterrupt:
            # Before the executor is left, which may wait for steps that wait for workers.
            pool.close()
            raise


def open_direct_steps(pool: WorkerPool | None = None) -> AbstractContextManager[IngestSteps]:
    """Return the steps as plain calls, without a server; None is one worker of its own."""
    workers = pool or WorkerPool(WorkSettings())
    return open_steps(DirectExecutor(workers.workers), workers)


def watch(ingestion: VideoIngestion, steps: IngestSteps, listener: Listener) -> IngestResult:
    """Watch every clip that is not in memory yet, in order; some are perceived in advance.

    A clip whose model keeps failing is left for the next run, and the other clips are watched.
    While a model's server is out, the run waits.

    Raises:
        DatabaseError: the database is gone; the same command resumes later.
        SetupError: a model is not to be had: its server was out for an hour, or refuses the key.
    """
    with tracing.span(tracing.Work.FLOW, "ingest", video=ingestion.video.id) as flow:
        with waiting_for_servers(listener.said):
            result = _watch(ingestion, steps, listener)
        flow.fields |= {"clips": result.clips, "fresh": result.fresh, "failed": result.failed}
    return result


def _watch(ingestion: VideoIngestion, steps: IngestSteps, listener: Listener) -> IngestResult:
    pending = ingestion.begin()
    total = ingestion.state().clips
    listener.opened(ingestion.video, total, total - len(pending))
    for remark in ingestion.remarks:
        listener.said(remark)
    clip_ms = ingestion.workspace.settings.watch.clip_ms
    with (
        alerts_beside(ingestion.workspace, steps.executor) as judge,
        ClipSpans(ingestion.video, clip_ms) as spans,
    ):
        for clip, error in _perceived_clips(ingestion, steps, spans, pending):
            error = spans.run(clip, settle_clip, ingestion, steps, clip, error)
            spans.end(clip, error)
            notify(listener, ingestion.video, clip, error)
            build_windows_if_due(ingestion, steps, clip)
            judge()
        steps.build_windows(ingestion, final=ingestion.seen_to_the_end())
        return ingestion.finish()


def notify(listener: Listener, video: Video, clip: int, error: Exception | None) -> None:
    """Tell a listener that a clip is in memory, or that it is left for another run."""
    if error is None:
        listener.remembered(video, clip)
    else:
        listener.failed(video, clip, error)


def _perceived_clips(
    ingestion: VideoIngestion, steps: IngestSteps, spans: ClipSpans, clips: Iterable[int]
) -> Iterator[tuple[int, ModelError | None]]:
    """Yield each clip in order once it is perceived, with the model's error if it failed."""
    remaining = iter(clips)

    def start(clip: int) -> Waitable:
        return spans.run(clip, steps.perceive, ingestion, clip)

    ingestion.workspace.give_way()
    # One more for each clip that is written at the same time as another.
    started = deque(
        (clip, start(clip)) for clip in islice(remaining, steps.ahead + ingestion.at_once - 1)
    )
    while started:
        ingestion.workspace.give_way()
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


def settle_clip(
    ingestion: Ingestion, steps: IngestSteps, clip: int, error: ModelError | None
) -> ModelError | None:
    """Store a clip as memory, or mark it as failed; return the error if it is left.

    Args:
        ingestion: the ingestion.
        steps: runs its steps.
        clip: the number of the clip.
        error: the error with which it was perceived, if any.
    """
    if error is None:
        try:
            steps.remember(ingestion, clip)
        except ModelError as raised:
            error = raised
    if error is not None:
        ingestion.give_up(clip, error)
    return error


def build_windows_if_due(ingestion: Ingestion, steps: IngestSteps, clip: int) -> None:
    """Build what is due once the last clip of a window is settled."""
    if (clip + 1) % ingestion.workspace.settings.memory.patch_every == 0:
        steps.build_windows(ingestion, final=False)
