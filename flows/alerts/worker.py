"""Judges clips and delivers events beside an ingestion, in threads of their own.

The ingestion never waits for them but for a moment at its end. What is left then, or when the
process is killed, is in the database for the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple

from flows.alerts.delivery import Deliverer
from flows.alerts.judging import AlertJudge
from flows.workspace import Workspace
from store.queries.alerts import (
    WaitingClip,
    count_attempt,
    count_waiting_clips,
    count_waiting_events,
    waiting_clips,
)
from views.words import counted

POLL_S = 2.0
"""How often the threads look for work."""
LONGEST_POLL_S = 60.0
"""How often at least, while the text model does not answer."""
END_S = 20.0
"""The longest that an ingestion waits at its end for both threads."""
ATTEMPTS = 5
"""How often a clip is judged at most, if a model fails with it but answers otherwise."""
BATCH = 50

_LOG = logging.getLogger(f"homer.{__name__}")


class Judged(NamedTuple):
    """How many events were recorded, and how many clips wait since the text model is away."""

    events: int
    waiting: int = 0

    def report(self, delivered: int, waiting: int) -> str:
        """Return it in words, with how many events were delivered, and are to be tried again."""
        text = f"{counted(self.events, 'event')} recorded, {delivered} delivered"
        if waiting:
            text += f", {waiting} to be tried again"
        if self.waiting:
            text += f"; the text model does not answer: {counted(self.waiting, 'clip')} not judged"
        return text


def judge_waiting(
    workspace: Workspace, judge: AlertJudge, stopped: Callable[[], bool] = lambda: False
) -> Judged:
    """Judge the clips that wait.

    A clip with which a model fails waits for the next call, and is given up after ``ATTEMPTS``.
    Where the text model does not answer at all, all clips wait, and no attempt counts.

    Raises:
        DatabaseError: the database is gone.
    """
    recorded, failed = 0, set[WaitingClip]()
    while not stopped():
        with workspace.store.begin() as session:
            waiting = waiting_clips(session, BATCH, ATTEMPTS)
        due = [clip for clip in waiting if clip not in failed]
        if not due:
            break
        for clip in due:
            if stopped():
                break
            try:
                recorded += judge.judge(clip)
            except Exception as error:  # noqa: BLE001 - one odd clip must not stop the others
                failed.add(clip)
                fields = {"error": type(error).__name__, "video": clip.video, "clip": clip.clip}
                _LOG.warning("a clip was not judged", extra={"homer": fields})
                if not judge.model_answers(clip):
                    with workspace.store.begin() as session:
                        return Judged(recorded, count_waiting_clips(session, ATTEMPTS))
                with workspace.store.begin() as session:
                    count_attempt(session, clip)
    return Judged(recorded)


def judge_and_deliver(workspace: Workspace) -> str:
    """Judge the clips and deliver the events that wait; return in words what came of it.

    Raises:
        DatabaseError: the database is gone.
    """
    judged = judge_waiting(workspace, AlertJudge(workspace))
    delivered = deliver_waiting(workspace)
    with workspace.store.begin() as session:
        return judged.report(delivered, count_waiting_events(session))


def deliver_waiting(workspace: Workspace) -> int:
    """Deliver the events that are due; return how many were delivered.

    Raises:
        DatabaseError: the database is gone.
    """
    return Deliverer(workspace.store, workspace.settings.alerts).deliver_due()


@contextmanager
def alerts_judged(workspace: Workspace) -> Iterator[None]:
    """Judge clips and deliver events in the background while the block runs."""
    ending, over = Event(), Event()
    judge = AlertJudge(workspace)
    deliverer: list[Deliverer] = []

    def deliver() -> bool:
        deliverer[:] = deliverer or [Deliverer(workspace.store, workspace.settings.alerts)]
        deliverer[0].deliver_due(over.is_set)
        return True

    def judge_clips() -> bool:
        return not judge_waiting(workspace, judge, over.is_set).waiting

    judging = _Repeated("judge alerts", judge_clips, ending, over)
    delivering = _Repeated("deliver alerts", deliver, judging.ended, over)
    try:
        yield
        ending.set()
        deadline = time.monotonic() + END_S
        for thread in (judging, delivering):
            thread.join(max(0.0, deadline - time.monotonic()))
    finally:
        ending.set()
        over.set()


class _Repeated(Thread):
    """Calls something again and again, and once more after ``ending`` is set.

    It waits longer each time, up to ``LONGEST_POLL_S``, while the call says that it could not do
    its work. Its errors are logged only: nothing of alerts may disturb an ingestion.
    """

    def __init__(self, name: str, call: Callable[[], bool], ending: Event, over: Event) -> None:
        super().__init__(name=name, daemon=True)
        self._call, self._ending, self._over = call, ending, over
        self.ended = Event()
        self.start()

    def run(self) -> None:
        """Run until ``ending`` is set."""
        is_last, pause_s = False, POLL_S
        while not is_last and not self._over.is_set():
            is_last = self._ending.wait(pause_s)
            pause_s = POLL_S if self._try() else min(2 * pause_s, LONGEST_POLL_S)
        self.ended.set()

    def _try(self) -> bool:
        try:
            return self._call()
        except Exception as error:  # noqa: BLE001 - see the class
            fields = {"error": type(error).__name__, "thread": self.name}
            _LOG.warning("alerts failed", extra={"homer": fields})
        return False
