"""Who perceives: threads of this process, or processes beside it that each load the models once.

Clips are perceived by several workers at a time and remembered one after another. A worker that is
killed takes nothing along: its clip is perceived again by another. Workers end with this process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from types import TracebackType
from typing import Protocol, Self

from domain.errors import ModelError
from domain.settings import WorkSettings
from flows.ingest_video import VideoIngestion
from flows.worker_processes import Processes
from models.slots import Slots
from perception.worker import Delivery, Order, carry_out


class WorkerGone(ModelError):
    """A worker was killed while it perceived, by somebody or for want of memory."""


class Executor(Protocol):
    """What carries out orders elsewhere."""

    def submit(self, work: Callable[[Order], Delivery], order: Order, /) -> Future[Delivery]:
        """Begins the work."""

    def end(self) -> None:
        """Ends it, with whatever is under way."""


class WorkerPool:
    """The workers of one run.

    Args:
        settings: how many, and where.
        begin: starts processes; another one in tests.

    ``ahead`` clips are begun before the one that is remembered: as many as there are workers, and
    as many again, so that none waits for a slow one; only small things are kept of them.
    """

    def __init__(
        self, settings: WorkSettings, begin: Callable[[int], Executor] | None = None
    ) -> None:
        self.workers = settings.workers
        self.ahead = 1 if self.workers == 1 else 2 * self.workers
        self.threads = threads_each(self.workers)
        self._begin = begin or Processes
        self._beside = settings.where != "threads"
        self._executor: Executor | None = None
        self._changing = threading.Lock()
        self._closed = False
        self._places = places(settings.at_once)

    def perceive(self, work: VideoIngestion, clip: int) -> None:
        """Have a clip perceived, and wait for it; called from as many threads as workers.

        Raises:
            WorkerGone: the worker was killed; asked again, another one takes the clip.
            ModelError: a model failed.
            CancelledError: the crew was sent home meanwhile.
        """
        with self._places.one(wait=self._wait):
            self._perceive(work, clip)

    def _wait(self, seconds: float) -> None:
        if self._closed:
            raise CancelledError
        time.sleep(seconds)

    def _perceive(self, work: VideoIngestion, clip: int) -> None:
        if self._beside:
            work.take(self._elsewhere(work.order(clip, self.threads)))
        elif self.workers > 1:
            work.take(carry_out(work.order(clip, self.threads)))
        else:
            work.perceive(clip)

    def _elsewhere(self, order: Order) -> Delivery:
        executor = self._present()
        try:
            return executor.submit(carry_out, order).result()
        except BrokenExecutor as error:
            self._drop(executor)
            raise WorkerGone(f"the worker that perceived clip {order.clip} was killed") from error

    def _present(self) -> Executor:
        with self._changing:
            if self._closed:
                raise CancelledError
            if self._executor is None:
                self._executor = self._begin(self.workers)
            return self._executor

    def _drop(self, broken: Executor) -> None:
        """Where one process was killed, the pool ends the others; new ones begin."""
        with self._changing:
            if self._closed:
                raise CancelledError
            if self._executor is broken:
                self._executor = None
        broken.end()

    def close(self) -> None:
        """Sends the workers home, whatever they are at: nothing of it is in memory yet."""
        with self._changing:
            self._closed, executor = True, self._executor
        if executor is not None:
            executor.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def places(at_once: int | None) -> Slots:
    """Where clips are perceived on this machine, at most so many at a time; None: no limit."""
    return Slots("perceive", at_once)


def threads_each(workers: int) -> int:
    """Threads of a model of one worker, so that together they are no more than the cores."""
    return max(1, (os.cpu_count() or 1) // workers)
