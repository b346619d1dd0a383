"""Pages of 2 MB for what is read from end to end again and again.

With pages of 4 kB a processor spends much of such a pass on finding where each of them is. NumPy
asks the system for large pages for its own large arrays; what ONNX Runtime packs for its products
is in memory of the C library, which does not. So it is asked for afterwards, and beside: the system
has to copy what there is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

ALLOWED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MAPS = Path("/proc/self/maps")
LARGE = 1 << 21
"""Bytes of a large page."""
NAME = "large pages"
"""What the thread is called that asks for them."""
GROWN = 1.25
"""So many times what was held before is worth to ask again."""
_AT_ONCE = 32 * LARGE
"""Bytes asked for at once: a process that is to end waits for them."""
_COLLAPSE = 25
"""Linux, madvise(2): MADV_COLLAPSE, since 6.1. Memory stays as it is; what cannot be is left."""


class LargePages:
    """Asks for large pages, once there is enough to read and whenever it has grown by much."""

    def __init__(self, least: int) -> None:
        """``least``: of less it is not worth it."""
        self._least, self._asked_at = least, 0
        self._under_way: Thread | None = None

    def hold(self, amount: int) -> Thread | None:
        """So much is held now, in units of one's own; the thread that asks, where one has begun."""
        if self._under_way and self._under_way.is_alive():
            return None
        self._asked_at = min(self._asked_at, amount)
        if amount < max(self._least, GROWN * self._asked_at):
            return None
        self._asked_at = amount
        self._under_way = Thread(target=ask_for_large_pages, name=NAME, daemon=True)
        self._under_way.start()
        return self._under_way


def ask_for_large_pages() -> None:
    """Have all of this process's own memory in large pages, as far as the system can and may.

    Does nothing where the system is not Linux, or large pages are switched off.
    """
    with suppress(OSError, AttributeError):
        if "[never]" not in ALLOWED.read_text("ascii"):
            _collapse(list(_own_memory()))


def _collapse(spans: list[tuple[int, int]]) -> None:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in spans:
        for at in range(start, end, _AT_ONCE):
            advise(at, min(_AT_ONCE, end - at), _COLLAPSE)


def _own_memory() -> Iterator[tuple[int, int]]:
    """Where memory begins and ends that is of no file and of this process alone, in large pages."""
    for line in MAPS.read_text("utf-8", "replace").splitlines():
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        start, end = (int(side, 16) for side in span.split("-"))
        start, end = -(-start // LARGE) * LARGE, end // LARGE * LARGE
        if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]) and start < end:
            yield start, end
