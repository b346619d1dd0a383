"""Progress reports of long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Reports the progress of one task at a time."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Start a task of ``total`` steps, ``done`` of which are done already."""

    def step(self, steps: int = 1) -> None:
        """Report that many steps done."""


class Megabytes:
    """Counts bytes and reports whole megabytes."""

    def __init__(self, progress: Progress, label: str, total: int) -> None:
        self._progress, self._bytes, self._reported = progress, 0, 0
        progress.start(label, max(1, _megabytes(total)))

    def step(self, count: int) -> None:
        """Report that many bytes done."""
        self._bytes += count
        if (new_megabytes := _megabytes(self._bytes) - self._reported) > 0:
            self._reported += new_megabytes
            self._progress.step(new_megabytes)


def _megabytes(count: int) -> int:
    return round(count / 1e6)


def import_progress(progress: Progress, label: str) -> Callable[[int, int], None]:
    """Return a callback that moves it to where an import is, whatever was done before."""
    reached: list[int] = []

    def move(done: int, total: int) -> None:
        if not reached:
            progress.start(label, total, done)
        else:
            progress.step(done - reached[-1])
        reached.append(done)

    return move
