"""Progress reports of long work."""

from __future__ import annotations

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
