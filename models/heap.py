"""The C library's memory, in which pictures and all that models compute lie.

glibc gives threads pools ("arenas") of their own, eight for each processor, and each keeps what is
freed in it for its own threads. Models run in many threads that come and go, so that the same large
buffers would come to lie in each pool: with two pools, watching takes about half of the memory.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

ARENAS = 2
"""As many as models run in threads at a time: with one they would wait for each other."""
_ARENA_MAX = -8
"""mallopt(3): M_ARENA_MAX."""
_SET_OTHERWISE = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


@cache
def share_arenas() -> bool:
    """Let all threads share ``ARENAS`` pools; those that there are already stay.

    Who set it otherwise in the environment keeps that; with other C libraries it does nothing.

    Returns:
        Whether the C library took it.
    """
    if any(name in os.environ for name in _SET_OTHERWISE):
        return False
    with suppress(OSError, TypeError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, ARENAS))
    return False


def give_back() -> None:
    """Have the C library return what is free in its pools to the system.

    To be called between large pieces of work: what the next one asks for may fit nowhere in what
    is free, and both would be held.
    """
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
