"""Limit concurrent questions, and wait for them when the server stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from api.problems import TooManyRequests

POLL_S = 0.05


class QuestionSlots:
    """Slots for long work; a slot is held until the work ends, also when its client has left.

    ``closing`` is set when the server stops.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closing = asyncio.Event()
        self._in_use, self._lock = 0, threading.Lock()

    def acquire(self) -> None:
        """Acquire a slot.

        Raises:
            TooManyRequests: no slot is free.
        """
        with self._lock:
            if self._in_use >= self.limit:
                raise TooManyRequests(f"{self.limit} of these run already, which is the limit")
            self._in_use += 1

    def release(self) -> None:
        """Release a slot, from any thread."""
        with self._lock:
            self._in_use -= 1

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot while the context lasts.

        Raises:
            TooManyRequests: no slot is free.
        """
        self.acquire()
        try:
            yield
        finally:
            self.release()

    @property
    def in_use(self) -> int:
        """Number of slots in use."""
        with self._lock:
            return self._in_use

    async def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no slot is in use; return False after ``timeout_s`` seconds."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.in_use and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_S)
        return not self.in_use
