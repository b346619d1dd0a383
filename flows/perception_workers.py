"""Perception workers: threads of this process, or processes that each load the models once.

Several workers perceive clips at a time; clips are remembered one after another. If a worker is
killed, another one perceives its clip again. Workers end with this process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from typing import Protocol, Self, cast

from domain.errors import ModelError
from domain.settings import WorkSettings
from flows.clip_memory import Ingestion
from flows.ingest_video import VideoIngestion
from flows.worker_processes import ProcessPool
from models.slots import Slots
from perception.worker import Delivery, Order, carry_out


class WorkerKilled(ModelError):
    """A worker was killed while it perceived, by somebody or for lack of memory."""


class OrderExecutor(Protocol):
    """Something that carries out orders in other processes."""

    def submit(self, work: Callable[[Order], Delivery], order: Order, /) -> Future[Delivery]:
        """Start the work."""

    def end(self) -> None:
        """Stop it, with everything under way."""


class WorkerPool:
    """The workers of one run.

    Args:
        settings: how many, and where.
        start: starts processes; replaced in tests.

    ``ahead`` clips are started before one is remembered: twice as many as there are workers, so
    that none waits for a slow one; only small objects of them are held.
    """

    def __init__(
        self, settings: WorkSettings, start: Callable[[int], OrderExecutor] | None = None
    ) -> None:
        self.workers = settings.workers
        self.ahead = 1 if self.workers == 1 else 2 * self.workers
        self.threads = threads_per_worker(self.workers)
        self._start = start or ProcessPool
        self._in_processes = settings.where != "threads"
        self._executor: OrderExecutor | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._places = perception_slots(settings.at_once)

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
            # A stream's pool is one thread (``stream_work_settings``), so this is a file.
            file = cast("VideoIngestion", ingestion)
            order = file.order(clip, self.threads)
            file.take(self._perceive_in_process(order) if self._in_processes else carry_out(order))

    def _wait(self, seconds: float) -> None:
        if self._closed:
            raise CancelledError
        time.sleep(seconds)

    def _perceive_in_process(self, order: Order) -> Delivery:
        executor = self._present()
        try:
            return executor.submit(carry_out, order).result()
        except BrokenExecutor as error:
            self._drop(executor)
            raise WorkerKilled(f"the worker that perceived clip {order.clip} was killed") from error

    def _present(self) -> OrderExecutor:
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._executor is None:
                self._executor = self._start(self.workers)
            return self._executor

    def _drop(self, broken: OrderExecutor) -> None:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def perception_slots(at_once: int | None) -> Slots:
    """Return the slots in which this machine perceives, ``at_once`` of them; None: no limit."""
    return Slots("perceive", at_once)


def threads_per_worker(workers: int) -> int:
    """Return the threads of one worker's models, so that all workers together use every core."""
    return max(1, (os.cpu_count() or 1) // workers)
