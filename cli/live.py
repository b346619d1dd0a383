"""A question that is being worked on: its events as lines, and the words as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.console import is_terminal, note
from domain.trajectory import PartialReply, RunEvent, RunListener
from views.answer_lines import event_lines, reply_tail
from views.words import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

ROOM = 24
"""Columns for the spinner, the call's purpose and the ends of a line."""


@contextmanager
def teller(*, silent: bool = False) -> Iterator[RunListener | None]:
    """Tells the person who waits what happens; nothing at all where ``silent``.

    On a terminal the last line shows what the model writes; elsewhere there are lines only.
    """
    if silent or not is_terminal():
        yield None if silent else tell
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:
        yield _Live(console, status)


def tell(told: RunEvent) -> None:
    """One event as lines, where it says something new."""
    for line in event_lines(told):
        note(line)


class _Live:
    """Lines above a last line that follows the words as they come."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console, self._status = console, status

    def __call__(self, told: RunEvent) -> None:
        from rich.text import Text

        if isinstance(told, PartialReply):
            self._status.update(Text(reply_tail(told, self._console.width - ROOM), style="dim"))
            return
        for line in event_lines(told):
            self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
        self._status.update("")
