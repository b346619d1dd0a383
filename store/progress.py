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


class Meter(Progress, Protocol):
    """Reports progress, and says what is worth knowing meanwhile."""

    def say(self, text: str) -> None:
        """Say a line."""

    def aside(self, text: str) -> None:
        """Set a few words beside the count, such as the cost so far."""


class SilentMeter:
    """Shows nothing, for work that is a step of other work or whose progress nobody wants."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Ignore new work."""

    def step(self, steps: int = 1) -> None:
        """Ignore finished steps."""

    def say(self, text: str) -> None:
        """Ignore a line."""

    def aside(self, text: str) -> None:
        """Ignore words beside the count."""


SILENT = SilentMeter()


def import_progress(bar: Progress, label: str) -> Callable[[int, int], None]:
    """Return a callback that moves the bar to where an import is, whatever was done before."""
    reached: list[int] = []

    def move(done: int, total: int) -> None:
        if not reached:
            bar.start(label, total, done)
        else:
            bar.step(done - reached[-1])
        reached.append(done)

    return move


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
