"""Pages of 2 MB for what is read from end to end again and again.

With pages of 4 kB a processor spends a good part of such a pass on finding where each of them is.
NumPy asks the system for large pages for its own large arrays; what ONNX Runtime packs for its
products is in memory of the C library, which does not. So it is asked for afterwards, and beside:
the system copies what there is, which keeps a processor busy for a while.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

ALLOWED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MAPPED = Path("/proc/self/smaps")
LARGE = 1 << 21
"""Bytes of a large page. One is asked for at a time: a process that is to end waits for it."""
FULL = 0.75
"""Of memory that less of is in use, nothing is asked: it would be in use afterwards."""
_REST = 9.0
"""Others are left alone for so many times as long as each of these takes."""
_COLLAPSE = 25
"""Linux, madvise(2): MADV_COLLAPSE, since 6.1. What is in memory stays; what cannot be is left."""
_OWN = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *(?:\[heap\])?\n(?:[A-Z].*\n)*?Rss: *(\d+) kB",
    re.MULTILINE,
)
"""Memory of no file, of this process alone, in ``MAPPED``: from, to, and how much is in use."""


class LargePages:
    """Asks for large pages on a thread beside, one time after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted = False
        self._thread: Thread | None = None

    def want(self) -> None:
        """Ask for them, and once more where it was asked already but not yet done."""
        with self._lock:
            self._wanted = True
            if self._thread is None or not self._thread.is_alive():
                thread = Thread(target=self._ask, name="large pages", daemon=True)
                thread.start()
                self._thread = thread

    def wait(self) -> None:
        """Until nothing is asked any more."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _ask(self) -> None:
        while self._next():
            ask_for_large_pages()

    def _next(self) -> bool:
        with self._lock:
            goes_on, self._wanted = self._wanted, False
            self._thread = self._thread if goes_on else None
            return goes_on


OF_PROCESS = LargePages()
"""Memory is that of the whole process."""


def ask_for_large_pages() -> None:
    """Have this process's own memory in large pages, as far as the system can and may.

    Does nothing where the system is not Linux, or large pages are switched off.
    """
    with suppress(OSError, AttributeError):
        if "[never]" not in ALLOWED.read_text("ascii"):
            _collapse(list(_own_memory()))


def _collapse(spans: list[tuple[int, int]]) -> None:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in spans:
        for at in range(start, end, LARGE):
            begun = time.perf_counter()
            advise(at, LARGE, _COLLAPSE)
            time.sleep(_REST * (time.perf_counter() - begun))


def _own_memory() -> Iterator[tuple[int, int]]:
    """From where to where it is of large pages that are in use, nearly all."""
    for first, last, used in _OWN.findall(MAPPED.read_text("utf-8", "replace")):
        start, end = int(first, 16), int(last, 16)
        within = -(-start // LARGE) * LARGE, end // LARGE * LARGE
        if within[0] < within[1] and int(used) * 1024 >= FULL * (end - start):
            yield within
