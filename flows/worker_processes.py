"""Processes that perceive clips. They import this module, so it has few imports."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any

from perception.worker import Delivery, Order


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
