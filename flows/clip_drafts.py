"""Drafts of clips that a language model writes in advance, several calls at a time.

Only the calls overlap. Clips are stored in order, one after the other, and a draft is not stored
except in the record of its calls: a run that was killed asks again and gets the recorded replies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context

from domain.errors import DatabaseError
from memory.drafts import WrittenDraft
from memory.write_clip import ClipPercept

Write = Callable[[Sequence[ClipPercept]], WrittenDraft | None]
"""Writes the last of these clips, given those that will be stored before it."""


class ClipDrafts:
    """Drafts of the next clips, written as soon as they are perceived; safe between threads.

    Args:
        write: writes a clip.
        at_once: how many clips are written at a time; as many perceived clips are held in memory.
    """

    def __init__(self, write: Write, at_once: int) -> None:
        self._write, self._at_once = write, at_once
        self._lock = threading.Lock()
        self._expected: list[int] = []
        self._ready: dict[int, tuple[ClipPercept, Context]] = {}
        self._futures: dict[int, Future[WrittenDraft | None]] = {}

    def expect(self, clips: Iterable[int]) -> None:
        """Announce the clips that will be stored next, in order."""
        with self._lock:
            self._expected += clips

    def perceived(self, clip: int, percept: ClipPercept) -> None:
        """Note that a clip is perceived, and start to write it when it is due."""
        with self._lock:
            self._ready[clip] = (percept, copy_context())
            self._start_due()

    def settled(self, clip: int) -> None:
        """Note that a clip was stored or given up, and start the next ones."""
        with self._lock:
            self._expected = [expected for expected in self._expected if expected != clip]
            self._ready.pop(clip, None)
            self._futures.pop(clip, None)
            self._start_due()

    def draft(self, clip: int) -> WrittenDraft | None:
        """Wait for the draft of a clip; None where the clip has to be written now.

        Raises:
            Exception: an error of the writing other than a failure of the model.
        """
        with self._lock:
            future = self._futures.get(clip)
        try:
            return future.result() if future is not None else None
        except DatabaseError:
            # Storing the clip meets the same error, and retries it.
            return None

    def _start_due(self) -> None:
        """Start the writing of clips that are due; called with the lock held."""
        due = self._expected[: self._at_once]
        for place, clip in enumerate(due):
            if clip not in self._ready:
                return
            if clip not in self._futures:
                self._start(clip, [self._ready[earlier][0] for earlier in due[: place + 1]])

    def _start(self, clip: int, percepts: Sequence[ClipPercept]) -> None:
        future: Future[WrittenDraft | None] = Future()
        self._futures[clip] = future
        args = (_set_result, future, self._write, percepts)
        # A daemon thread: Ctrl-C does not wait for a model.
        thread = threading.Thread(
            target=self._ready[clip][1].run, args=args, daemon=True, name=f"write {clip}"
        )
        thread.start()


def _set_result(
    future: Future[WrittenDraft | None], write: Write, percepts: Sequence[ClipPercept]
) -> None:
    """Write a draft and set it, or the error, as the result of ``future``."""
    try:
        future.set_result(write(percepts))
    except BaseException as error:  # noqa: BLE001 - raised where the draft is waited for
        future.set_exception(error)
