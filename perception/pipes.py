"""Reads a pipe without blocking: a reader that is asked to stop does so soon."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

POLL_S = 0.25
"""How often a reader that waits looks whether to stop."""


class Pipe:
    """A pipe as a readable file. ``ended`` tells that the writer closed it.

    ``is_timed_out`` gives up waiting for a writer, but never one that has begun to write.
    """

    def __init__(
        self,
        descriptor: int,
        is_stopping: Callable[[], bool],
        *,
        owned: bool,
        is_timed_out: Callable[[], bool] = lambda: False,
    ) -> None:
        self._descriptor, self._is_stopping, self._owned = descriptor, is_stopping, owned
        self._is_timed_out, self._began = is_timed_out, False
        self.ended = False

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes, waiting for some; empty at the end or when asked to stop."""
        while not (self._is_stopping() or (not self._began and self._is_timed_out())):
            ready, _, _ = select.select([self._descriptor], [], [], POLL_S)
            if not ready:
                continue
            data = os.read(self._descriptor, size)
            if data or self._began or not self._owned:
                self._began, self.ended = True, not data
                return data
            # Wait a little: a FIFO without a writer is always ready, with nothing to read.
            select.select([], [], [], POLL_S)
        return b""

    def close(self) -> None:
        """Close a FIFO; standard input stays open."""
        if self._owned:
            os.close(self._descriptor)


def open_pipe(
    address: str, is_stopping: Callable[[], bool], is_timed_out: Callable[[], bool]
) -> Pipe:
    """Open standard input for ``-``, else a FIFO, without waiting for its writer.

    Raises:
        OSError: it cannot be opened.
    """
    if address == "-":
        return Pipe(sys.stdin.fileno(), is_stopping, owned=False, is_timed_out=is_timed_out)
    descriptor = os.open(address, os.O_RDONLY | os.O_NONBLOCK)
    return Pipe(descriptor, is_stopping, owned=True, is_timed_out=is_timed_out)
