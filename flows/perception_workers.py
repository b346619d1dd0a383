"""Perception workers: threads of this process, or processes that each load the models once.

Several workers perceive clips at a time; clips are remembered one after another. If a worker is
killed, another one perceives its clip again. Workers end with this process. Processes import this
module, so it has few imports.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Self, cast

from domain.errors import ModelError
from domain.settings import WorkSettings
from flows.executors import Executor, Step
from perception.perceive_clip import Delivery, Order, carry_out
from store.files import Slots

if TYPE_CHECKING:
    from flows.clip_memory import Ingestion
    from flows.ingest_video import VideoIngestion


class WorkerKilled(ModelError):
    """A worker was killed while it perceived, by somebody or for lack of memory."""


class ProcessPool:
    """A pool of processes that perceive, and that can be stopped at once."""

    def __init__(self, workers: int) -> None:
        self._context = _TrackingContext()
        self._pool = ProcessPoolExecutor(workers, mp_context=self._context, initializer=_initialise)

    def submit(self, work: Callable[[Order], Delivery], order: Order) -> Future[Delivery]:
        """Start the work in one of the processes."""
        return self._pool.submit(work, order)

    def end(self) -> None:
        """Stop the processes; callers that wait for one get ``BrokenExecutor``."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._context.processes:
            process.terminate()
        for process in self._context.processes:
            process.join()


class _TrackingContext(SpawnContext):
    """A context that records its processes, which the standard library's pool cannot stop."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[BaseProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> BaseProcess:  # type: ignore[override]  # noqa: N802
        process = get_context("spawn").Process(*args, **kwargs)
        self.processes.append(process)
        return process


def _initialise() -> None:
    """Ignore Ctrl-C, which the parent handles, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


class WorkerPool:
    """The workers of one run.

    Args:
        settings: how many, and where.
        start: starts processes; replaced in tests.

    ``ahead`` clips are started before one is remembered: twice as many as there are workers, so
    that none waits for a slow one; only small objects of them are held.
    """

    def __init__(
        self, settings: WorkSettings, start: Callable[[int], ProcessPool] | None = None
    ) -> None:
        self.workers = settings.workers
        self.ahead = 1 if self.workers == 1 else 2 * self.workers
        self.threads = threads_per_worker(self.workers)
        self._start = start or ProcessPool
        self._in_processes = settings.where != "threads"
        self._executor: ProcessPool | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._places = Slots("perceive", settings.at_once)

    def start(self, executor: Executor, ingestion: Ingestion, clip: int) -> Callable[[], object]:
        """Start to perceive a clip in a step; return what waits for it and raises its error."""
        if not executor.elsewhere:
            return executor.start(PERCEIVE, pool=self, ingestion=ingestion, clip=clip).result
        # A stream's steps run in this process (``flows.live_stream``), so this is a file.
        file = cast("VideoIngestion", ingestion)
        at_once = file.workspace.settings.work.at_once
        step = executor.start(PERCEIVE_ORDER, order=file.order(clip, self.threads), at_once=at_once)
        return lambda: file.take(step.result())

    def perceive(self, ingestion: Ingestion, clip: int) -> None:
        """Perceive a clip, and wait for it; called from as many threads as there are workers.

        Raises:
            WorkerKilled: the worker was killed; a retry uses another one.
            ModelError: a model failed.
            CancelledError: the pool was closed in the meantime.
        """
        with self._places.acquire(wait=self._wait):
            if self.workers == 1 and not self._in_processes:
                ingestion.perceive(clip)
                return
            file = cast("VideoIngestion", ingestion)
            order = file.order(clip, self.threads)
            if not self._in_processes:
                file.take(carry_out(order))
                return
            processes = self._present()
            try:
                file.take(processes.submit(carry_out, order).result())
            except BrokenExecutor as error:
                self._drop(processes)
                raise WorkerKilled(f"the worker that perceived clip {clip} was killed") from error

    def _wait(self, seconds: float) -> None:
        if self._closed:
            raise CancelledError
        time.sleep(seconds)

    def _present(self) -> ProcessPool:
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._executor is None:
                self._executor = self._start(self.workers)
            return self._executor

    def _drop(self, broken: ProcessPool) -> None:
        """Forget a broken pool of processes and stop the others; the next call starts new ones."""
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._executor is broken:
                self._executor = None
        broken.end()

    def close(self) -> None:
        """Stop the workers at once: nothing of their current clips is in memory yet."""
        with self._lock:
            self._closed, executor = True, self._executor
        if executor is not None:
            executor.end()

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Stop the workers on Ctrl-C in this block.

        That is before an executor is left, which may wait for steps that wait for workers.
        """
        try:
            yield
        except KeyboardInterrupt:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _perceive_order(order: Order, at_once: int | None = None) -> Delivery:
    """Perceive a clip in a cluster's worker, without the store, within its machine's limit."""
    with Slots("perceive", at_once).acquire():
        return carry_out(order)


PERCEIVE = Step(
    name="perceive",
    run_name="perceive {clip}",
    call=lambda pool, ingestion, clip: pool.perceive(ingestion, clip),
)
PERCEIVE_ORDER = Step(name="perceive", run_name="perceive {order.clip}", call=_perceive_order)


def threads_per_worker(workers: int) -> int:
    """Return the threads of one worker's models, so that all workers together use every core."""
    return max(1, (os.cpu_count() or 1) // workers)
