"""Reading a pipe without being stuck in it: a reader that is asked to stop does so soon."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

LOOK_S = 0.25
"""How often a reader that waits looks whether to stop."""


class Pipe:
    """A pipe as a file to be read. ``end`` tells that the writer has gone, not that it was left.

    ``tired`` gives up waiting for a writer, but never one that has begun to write.
    """

    def __init__(
        self,
        descriptor: int,
        stopping: Callable[[], bool],
        *,
        ours: bool,
        tired: Callable[[], bool] = lambda: False,
    ) -> None:
        self._descriptor, self._stopping, self._ours = descriptor, stopping, ours
        self._tired, self._began = tired, False
        self.end = False

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; waits for some; empty at the end, or where it is to stop."""
        while not (self._stopping() or (not self._began and self._tired())):
            ready, _, _ = select.select([self._descriptor], [], [], LOOK_S)
            if not ready:
                continue
            data = os.read(self._descriptor, size)
            if data or self._began or not self._ours:
                self._began, self.end = True, not data
                return data
            self._nobody_yet()
        return b""

    def _nobody_yet(self) -> None:
        """A FIFO that nobody has opened for writing is always ready, with nothing to read."""
        select.select([], [], [], LOOK_S)

    def close(self) -> None:
        """Let go of a FIFO; standard input stays open."""
        if self._ours:
            os.close(self._descriptor)


def open_pipe(address: str, stopping: Callable[[], bool], tired: Callable[[], bool]) -> Pipe:
    """Standard input for ``-``, else the FIFO at that place; does not wait for its writer.

    Raises:
        OSError: it cannot be opened.
    """
    if address == "-":
        return Pipe(sys.stdin.fileno(), stopping, ours=False, tired=tired)
    descriptor = os.open(address, os.O_RDONLY | os.O_NONBLOCK)
    return Pipe(descriptor, stopping, ours=True, tired=tired)
