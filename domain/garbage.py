"""Work that makes very many objects, all of which stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_inside, _was = 0, False


@contextmanager
def all_kept() -> Iterator[None]:
    """In here Python does not look through objects for circles to free; for seconds at most.

    It would do so again and again while their number grows, a fifth of the time and more. Any
    number of threads may be in here: the last one to leave turns it on again, if it was on.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _was
    with _lock:
        if _inside == 0:
            _was = gc.isenabled()
            gc.disable()
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0 and _was:
            gc.enable()
