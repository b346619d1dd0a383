"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Follows one piece of work at a time."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work of ``total`` steps, ``done`` of which need not be done again."""

    def step(self, steps: int = 1) -> None:
        """So many steps are done."""


class Megabytes:
    """Counts bytes and tells whole megabytes, which people can read."""

    def __init__(self, progress: Progress, label: str, total: int) -> None:
        self._progress, self._bytes, self._told = progress, 0, 0
        progress.start(label, max(1, _megabytes(total)))

    def step(self, count: int) -> None:
        """So many bytes are done."""
        self._bytes += count
        if (fresh := _megabytes(self._bytes) - self._told) > 0:
            self._told += fresh
            self._progress.step(fresh)


def _megabytes(count: int) -> int:
    return round(count / 1e6)
