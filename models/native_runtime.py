"""Settings of the native code that models run in: OpenMP's threads and the C library's memory.

CTranslate2 computes with OpenMP. glibc gives threads pools ("arenas") of their own, eight for each
processor, and each keeps what is freed in it for its own threads. Models run in many threads that
come and go, so that the same large buffers would come to lie in each pool: with two pools, watching
takes about half of the memory.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

ARENAS = 2
"""As many as threads in which models run at a time: with one they would wait for each other."""
_ARENA_MAX = -8
"""mallopt(3): M_ARENA_MAX."""
_SET_OTHERWISE = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


@cache
def limit_arenas() -> bool:
    """Limit the C library to ``ARENAS`` pools, which all threads share; existing ones stay.

    An environment that sets it otherwise is respected; other C libraries have no such setting.

    Returns:
        Whether the limit was set.
    """
    if any(name in os.environ for name in _SET_OTHERWISE):
        return False
    with suppress(OSError, TypeError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS))
    return False


def trim_heap() -> None:
    """Return what is free in the C library's pools to the system.

    To be called between large pieces of work: what the next one asks for may fit nowhere in what
    is free, and both would be held.
    """
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def make_idle_threads_sleep() -> None:
    """Make OpenMP's waiting threads sleep: on a busy machine they spin longer than they compute.

    To be called before what brings OpenMP along is imported. An environment that sets it otherwise
    is respected.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
