"""Progress of long work: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cli.console import is_terminal, note
from views.words import plain_line

PLAIN_EVERY_S = 2.0
"""A log is read later: it needs no line for each of a hundred quick steps."""


class ProgressMeter(Protocol):
    """Follows one piece of work at a time."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work of ``total`` steps, ``done`` of which need not be done again."""

    def step(self, steps: int = 1) -> None:
        """So many steps are done."""

    def say(self, text: str) -> None:
        """A line above the bar."""

    def aside(self, text: str) -> None:
        """A few words beside the count, such as what it has cost so far."""


class PlainMeter:
    """Plain lines with the time left."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._first = "", 0, 0, 0
        self._aside = ""
        self._began, self._told = 0.0, 0.0

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work of ``total`` steps."""
        self._label, self._total, self._done, self._first = plain_line(label), total, done, done
        self._began, self._told, self._aside = time.monotonic(), 0.0, ""

    def step(self, steps: int = 1) -> None:
        """So many steps are done; lines come at most every few seconds."""
        self._done += steps
        now, last = time.monotonic(), self._done >= self._total
        if not last and now - self._told < PLAIN_EVERY_S:
            return
        self._told = now
        eta = "" if last else f", {self._left_seconds():.0f} s left"
        note(f"{self._label}: {self._done}/{self._total}{eta}{self._aside}")

    def say(self, text: str) -> None:
        """A line of its own."""
        note(text)

    def aside(self, text: str) -> None:
        """A few words after the count, from the next line on."""
        self._aside = f", {plain_line(text)}" if text else ""

    def _left_seconds(self) -> float:
        fresh = max(1, self._done - self._first)
        return (time.monotonic() - self._began) / fresh * (self._total - self._done)


class BarMeter:
    """A rich bar with the time left."""

    def __init__(self, progress: object) -> None:
        from rich.progress import Progress

        assert isinstance(progress, Progress)  # noqa: S101 - typed lazily: rich is slow to import
        self._progress = progress
        self._task = progress.add_task("", total=None, visible=False)
        self._label = ""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work of ``total`` steps."""
        self._label = plain_line(label)
        self._progress.reset(
            self._task, total=total, completed=done, description=self._label, visible=True
        )

    def step(self, steps: int = 1) -> None:
        """So many steps are done."""
        self._progress.advance(self._task, steps)

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(plain_line(text), markup=False, highlight=False)

    def aside(self, text: str) -> None:
        """A few words after the label."""
        both = f"{self._label}, {plain_line(text)}" if text else self._label
        self._progress.update(self._task, description=both)


@contextmanager
def meter() -> Iterator[ProgressMeter]:
    """The meter that suits where stderr goes."""
    if not is_terminal():
        yield PlainMeter()
        return
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
