"""Output of the commands: data on stdout, everything else on stderr, progress of long work too.

All of it goes through here, since titles, names and speech come from anyone: control characters
could steer a terminal, and those that change the direction of writing could disguise a line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from domain.words import plain_line, printable, without_surrogates
from store.progress import Meter

if TYPE_CHECKING:
    from rich.progress import Progress


def say(text: str = "") -> None:
    """Print a line of the command's result; bytes of a file's name that are no text become "?"."""
    typer.echo(printable(text))


def note(text: str) -> None:
    """Print a line about the work on stderr, without control characters."""
    typer.echo(printable(text), err=True)


def confirm(question: str) -> None:
    """Ask whether to go on.

    Raises:
        typer.Abort: the answer is no.
    """
    typer.confirm(plain_line(question), abort=True, err=True)


def is_terminal() -> bool:
    """Return whether stderr, where progress goes, is a terminal."""
    return sys.stderr.isatty()


def say_json(data: Any) -> None:
    """Print one JSON document on one line, in UTF-8, keys in the order given."""
    say(escaped(json.dumps(data, ensure_ascii=False, default=str)))


def escaped(line: str) -> str:
    """Escape the characters of a line of JSON that cannot be seen; it means the same."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in without_surrogates(line))


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    for line in table(heads, rows):
        say(line)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield lines of columns padded to their widest cell; numbers are flush right."""
    # Untrusted words may hold line breaks and control characters.
    cells = [[plain_line("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
    right = [
        bool(cells)
        and all(row[i].replace(".", "", 1).replace("-", "", 1).isdigit() for row in cells)
        for i in range(len(heads))
    ]
    for row in [list(heads), *cells]:
        parts = zip(row, widths, right, strict=True)
        yield "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in parts).rstrip()


# Progress: a bar with the time left on a terminal, plain lines elsewhere.


PLAIN_EVERY_S = 2.0
"""Seconds between plain lines: a log needs none for each of a hundred quick steps."""


class PlainMeter:
    """Plain lines with the time left."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._first = "", 0, 0, 0
        self._aside = ""
        self._started, self._printed = 0.0, 0.0

    def start(self, label: str, total: int, done: int = 0) -> None:
        self._label, self._total, self._done, self._first = plain_line(label), total, done, done
        self._started, self._printed, self._aside = time.monotonic(), 0.0, ""

    def step(self, steps: int = 1) -> None:
        """Count finished steps; print a line at most every few seconds."""
        self._done += steps
        now, last = time.monotonic(), self._done >= self._total
        if not last and now - self._printed < PLAIN_EVERY_S:
            return
        self._printed = now
        # What was done before this start took none of its time.
        a_step = (now - self._started) / max(1, self._done - self._first)
        time_left = "" if last else f", {a_step * (self._total - self._done):.0f} s left"
        note(f"{self._label}: {self._done}/{self._total}{time_left}{self._aside}")

    def say(self, text: str) -> None:
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
        self._label = plain_line(label)
        self._progress.reset(
            self._task, total=total, completed=done, description=self._label, visible=True
        )

    def step(self, steps: int = 1) -> None:
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

    # Titles are no markup of Rich's.
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()]
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        yield BarMeter(progress)
