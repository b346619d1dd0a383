"""Progress of long work: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.console import is_terminal, note
from domain.words import plain_line
from store.progress import Meter

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_EVERY_S = 2.0
"""Seconds between plain lines: a log needs none for each of a hundred quick steps."""


class PlainMeter:
    """Plain lines with the time left."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._first = "", 0, 0, 0
        self._aside = ""
        self._started, self._printed = 0.0, 0.0

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Start on ``total`` steps."""
        self._label, self._total, self._done, self._first = plain_line(label), total, done, done
        self._started, self._printed, self._aside = time.monotonic(), 0.0, ""

    def step(self, steps: int = 1) -> None:
        """Count finished steps; print a line at most every few seconds."""
        self._done += steps
        now, last = time.monotonic(), self._done >= self._total
        if not last and now - self._printed < PLAIN_EVERY_S:
            return
        self._printed = now
        a_step = (now - self._started) / max(1, self._done - self._first)
        time_left = "" if last else f", {a_step * (self._total - self._done):.0f} s left"
        note(f"{self._label}: {self._done}/{self._total}{time_left}{self._aside}")

    def say(self, text: str) -> None:
        """Print a line."""
        note(text)

    def aside(self, text: str) -> None:
        """Set a few words after the count, from the next line on."""
        self._aside = f", {plain_line(text)}" if text else ""


class BarMeter:
    """A rich bar with the time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, visible=False)
        self._label = ""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Start on ``total`` steps."""
        self._label = plain_line(label)
        self._progress.reset(
            self._task, total=total, completed=done, description=self._label, visible=True
        )

    def step(self, steps: int = 1) -> None:
        """Count finished steps."""
        self._progress.advance(self._task, steps)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(plain_line(text), markup=False, highlight=False)

    def aside(self, text: str) -> None:
        """Set a few words after the label."""
        both = f"{self._label}, {plain_line(text)}" if text else self._label
        self._progress.update(self._task, description=both)


@contextmanager
def meter() -> Iterator[Meter]:
    """Open the meter that suits stderr: a bar on a terminal, else lines."""
    if not is_terminal():
        yield PlainMeter()
        return
    # Rich is slow to import, and needed on a terminal only.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()]
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        yield BarMeter(progress)
