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

from flows.alerts.delivery import Deliverer
from flows.alerts.judging import AlertJudge
from flows.workspace import Workspace
from store.queries.alerts import count_attempt, waiting_clips

POLL_S = 2.0
"""How often the threads look for work."""
END_S = 20.0
"""The longest that an ingestion waits at its end for both threads."""
ATTEMPTS = 5
"""How often a clip is judged at most, if a model fails with it."""
BATCH = 50

_LOG = logging.getLogger(f"homer.{__name__}")


def judge_waiting(
    workspace: Workspace, judge: AlertJudge, stopped: Callable[[], bool] = lambda: False
) -> int:
    """Judge the clips that wait; return how many events were recorded.

    A clip with which a model fails waits for the next call.

    Raises:
        DatabaseError: the database is gone.
    """
    recorded, failed = 0, set[object]()
    while not stopped():
        with workspace.store.begin() as session:
            waiting = waiting_clips(session, BATCH, ATTEMPTS)
        due = [clip for clip in waiting if clip not in failed]
        if not due:
            return recorded
        for clip in due:
            if stopped():
                return recorded
            try:
                recorded += judge.judge(clip)
            except Exception as error:  # noqa: BLE001 - one odd clip must not stop the others
                failed.add(clip)
                fields = {"error": type(error).__name__, "video": clip.video, "clip": clip.clip}
                _LOG.warning("a clip was not judged", extra={"homer": fields})
                with workspace.store.begin() as session:
                    count_attempt(session, clip)
    return recorded


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

    def deliver() -> None:
        deliverer[:] = deliverer or [Deliverer(workspace.store, workspace.settings.alerts)]
        deliverer[0].deliver_due(over.is_set)

    def judge_clips() -> None:
        judge_waiting(workspace, judge, over.is_set)

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

    Its errors are logged only: nothing of alerts may disturb an ingestion.
    """

    def __init__(self, name: str, call: Callable[[], None], ending: Event, over: Event) -> None:
        super().__init__(name=name, daemon=True)
        self._call, self._ending, self._over = call, ending, over
        self.ended = Event()
        self.start()

    def run(self) -> None:
        """Run until ``ending`` is set."""
        is_last = False
        while not is_last and not self._over.is_set():
            is_last = self._ending.wait(POLL_S)
            self._try()
        self.ended.set()

    def _try(self) -> None:
        try:
            self._call()
        except Exception as error:  # noqa: BLE001 - see the class
            fields = {"error": type(error).__name__, "thread": self.name}
            _LOG.warning("alerts failed", extra={"homer": fields})
