"""Clips that a language model writes ahead of their turn: several calls are under way at once.

Only calls overlap. Clips are stored one after the other, in order, and nothing is kept of a draft
but the record of its calls: a run that is killed asks again, and is served what is on record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass

from domain.errors import DatabaseError
from memory.drafts import WrittenDraft
from memory.write_clip import ClipPercept

Write = Callable[[Sequence[ClipPercept]], WrittenDraft | None]
"""Has the last of these clips written, after those that will be stored before it."""


@dataclass(frozen=True)
class _Ready:
    """A perceived clip, and the context in which it was perceived."""

    found: ClipPercept
    context: Context


class Drafting:
    """Has the next clips written as soon as they are perceived. Safe to share between threads.

    Args:
        write: has a clip written.
        at_once: how many at a time; so many perceived clips are held for it.
    """

    def __init__(self, write: Write, at_once: int) -> None:
        self._write, self._at_once = write, at_once
        self._lock = threading.Lock()
        self._coming: list[int] = []
        self._ready: dict[int, _Ready] = {}
        self._begun: dict[int, Future[WrittenDraft | None]] = {}

    def expect(self, clips: Iterable[int]) -> None:
        """These clips will be stored next, in this order."""
        with self._lock:
            self._coming += clips

    def perceived(self, clip: int, found: ClipPercept) -> None:
        """The clip can be written, in its turn."""
        with self._lock:
            self._ready[clip] = _Ready(found, copy_context())
            self._begin()

    def settled(self, clip: int) -> None:
        """The clip is stored, or left: the next ones move up."""
        with self._lock:
            self._coming = [one for one in self._coming if one != clip]
            self._ready.pop(clip, None)
            self._begun.pop(clip, None)
            self._begin()

    def draft(self, clip: int) -> WrittenDraft | None:
        """Waits for what was written; None where it is to be written now.

        Raises:
            Exception: whatever the writing ended with that is no failure of the model's.
        """
        with self._lock:
            future = self._begun.get(clip)
        try:
            return future.result() if future is not None else None
        except DatabaseError:
            # What stores the clip meets the same, and knows how to try again.
            return None

    def _begin(self) -> None:
        """Begin what is due; called with the lock held."""
        first = self._coming[: self._at_once]
        for place, clip in enumerate(first):
            if clip not in self._ready:
                return
            if clip not in self._begun:
                self._start(clip, [self._ready[one].found for one in first[: place + 1]])

    def _start(self, clip: int, coming: Sequence[ClipPercept]) -> None:
        future: Future[WrittenDraft | None] = Future()
        self._begun[clip] = future
        args = (_settle, future, self._write, coming)
        # A daemon: whoever presses Ctrl-C waits for no model.
        thread = threading.Thread(
            target=self._ready[clip].context.run, args=args, daemon=True, name=f"write {clip}"
        )
        thread.start()


def _settle(
    future: Future[WrittenDraft | None], write: Write, coming: Sequence[ClipPercept]
) -> None:
    try:
        future.set_result(write(coming))
    except BaseException as error:  # noqa: BLE001 - raised where the draft is waited for
        future.set_exception(error)
