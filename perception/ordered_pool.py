"""Runs work on a few items at a time, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

StopCheck = Callable[[], bool]


def map_ordered(
    work: Callable[[T, StopCheck], R], items: Iterable[T], workers: int, max_pending: int = 0
) -> Generator[R, None, None]:
    """Yield ``work`` of every item, in order; the next items are processed meanwhile.

    Where nobody takes results any more, what is under way is told to stop and waited for.

    Args:
        work: is given an item, and may ask now and then whether it is to stop.
        items: what is worked on.
        workers: how many at a time, at least 1.
        max_pending: how many are begun before a result is taken; no fewer than there are lanes.
    """
    stop, remaining = Event(), deque(items)
    pending: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="lane")
    try:
        while pending or remaining:
            while remaining and len(pending) < max(workers, max_pending):
                pending.append(pool.submit(work, remaining.popleft(), stop.is_set))
            result = pending.popleft().result()
            if not pending and not remaining:
                # Whoever takes the last result may never ask for the end.
                pool.shutdown()
            yield result
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
