"""Processes that carry out orders to perceive; they import this module, so it is light."""

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


class Processes:
    """Processes that carry out orders, and that can be ended at once."""

    def __init__(self, workers: int) -> None:
        self._begun = _Begun()
        self._pool = ProcessPoolExecutor(workers, mp_context=self._begun, initializer=_settle_in)

    def submit(self, work: Callable[[Order], Delivery], order: Order) -> Future[Delivery]:
        """Begins the work in one of the processes."""
        return self._pool.submit(work, order)

    def end(self) -> None:
        """Ends the processes; who waits for one is told that it is broken."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._begun.processes:
            process.terminate()
        for process in self._begun.processes:
            process.join()


class _Begun(SpawnContext):
    """Fresh processes, each remembered: the pool of the standard library cannot end them."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[BaseProcess] = []

    def Process(self, *args: Any, **more: Any) -> BaseProcess:  # type: ignore[override]  # noqa: N802
        process = get_context("spawn").Process(*args, **more)
        self.processes.append(process)
        return process


def _settle_in() -> None:
    """Ctrl-C is for the process that hands out the work; this one ends with it, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
