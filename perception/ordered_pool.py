"""Work on one thing after the other, a few at a time, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

Stopped = Callable[[], bool]


def in_lanes(
    work: Callable[[T, Stopped], R], items: Iterable[T], lanes: int, begun_most: int = 0
) -> Generator[R, None, None]:
    """``work`` of every item, in order; the next ones are under way while the first is waited for.

    Where nobody takes results any more, what is under way is told to stop and waited for.

    Args:
        work: is given an item, and may ask now and then whether it is to stop.
        items: what is worked on.
        lanes: how many at a time, at least 1.
        begun_most: how many are begun before a result is taken; no fewer than there are lanes.
    """
    stop, left = Event(), deque(items)
    begun: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(lanes, thread_name_prefix="lane")
    try:
        while begun or left:
            while left and len(begun) < max(lanes, begun_most):
                begun.append(pool.submit(work, left.popleft(), stop.is_set))
            result = begun.popleft().result()
            if not begun and not left:
                # Whoever takes the last result may never ask for the end.
                pool.shutdown()
            yield result
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
