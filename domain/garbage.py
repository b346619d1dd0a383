"""Pause garbage collection during work that creates many long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_active, _was_enabled = 0, False


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector in this block, for seconds at most.

    It would scan all objects again and again while their number grows, a fifth of the time and
    more. Any number of threads may be in the block: the last one to leave enables the collector
    again if it was enabled before.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _active, _was_enabled
    with _lock:
        if _active == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _active += 1


def _leave() -> None:
    global _active
    with _lock:
        _active -= 1
        if _active == 0 and _was_enabled:
            gc.enable()
