"""Questions that are searched beside whoever asked them: found again by their trajectory.

A run goes on in a thread of this process, whether or not anybody watches. What it does is on
record at every step, so a process that is ended loses nothing but time: ``resume`` goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from domain.asking import Question
from domain.errors import HomerError
from domain.live import PartialReply, RunEvent
from domain.trajectory import ForkEdit
from graphs.ask import StoppedEarly
from graphs.runner import Runner
from graphs.stream import Stop

GONE = "the run ended without an answer"


class BackgroundRun:
    """One run: what its model says at the moment, and how it ended if it failed."""

    def __init__(self) -> None:
        self.said: PartialReply | None = None
        self.error = ""
        self._stop = Stop()

    def tell(self, told: RunEvent) -> None:
        """Told by the run at every event and word.

        Raises:
            KeyboardInterrupt: the run is to stop.
        """
        self._stop.check()
        self.said = told if isinstance(told, PartialReply) else None

    def stop(self) -> None:
        """End at the next event or word, with the best answer so far."""
        self._stop.set()


class BackgroundRuns:
    """The runs of this process, by trajectory. Thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[BackgroundRun, threading.Thread]] = {}
        self._lock = threading.Lock()

    def ask(self, asker: Runner, question: Question) -> str:
        """Begin to search for an answer; returns the trajectory.

        Raises:
            HomerError: as ``Runner.begin``.
        """
        run = BackgroundRun()
        state, desk = asker.begin(question, run.tell)
        return self._start(state["trajectory"], run, lambda: asker.run(state, desk))

    def fork(self, asker: Runner, name: str, number: int, edit: ForkEdit) -> str:
        """Begin a fork; returns its trajectory.

        Raises:
            HomerError: as ``Runner.begin_fork``.
        """
        run = BackgroundRun()
        state, desk = asker.begin_fork(name, number, edit, run.tell)
        return self._start(state["trajectory"], run, lambda: asker.run(state, desk))

    def resume(self, asker: Runner, trajectory: str) -> str:
        """Go on with a question that was broken off; ``trajectory`` is its whole id."""
        run = BackgroundRun()
        return self._start(trajectory, run, lambda: asker.resume(trajectory, run.tell))

    def running(self, trajectory: str) -> bool:
        """Whether this process works on it."""
        found = self._runs.get(trajectory)
        return found is not None and found[1].is_alive()

    def said(self, trajectory: str) -> PartialReply | None:
        """What the model is saying, if it is."""
        found = self._runs.get(trajectory)
        return found[0].said if found else None

    def error(self, trajectory: str) -> str:
        """Why it ended without an answer; empty where it did not."""
        found = self._runs.get(trajectory)
        return found[0].error if found else ""

    def stop(self, trajectory: str) -> None:
        """Ends a run with the best answer so far, where this process works on it."""
        if self.running(trajectory):
            self._runs[trajectory][0].stop()

    def wait(self, trajectory: str, timeout_s: float | None = None) -> None:
        """Returns when the run has ended."""
        found = self._runs.get(trajectory)
        if found is not None:
            found[1].join(timeout_s)

    def _start(self, trajectory: str, run: BackgroundRun, work: Callable[[], object]) -> str:
        thread = threading.Thread(
            target=_safely, args=(run, work), name=f"ask {trajectory}", daemon=True
        )
        with self._lock:
            self._runs[trajectory] = (run, thread)
        thread.start()
        return trajectory


def _safely(run: BackgroundRun, work: Callable[[], object]) -> None:
    """The end of a thread: nobody is there to raise an error to."""
    try:
        work()
    except (StoppedEarly, KeyboardInterrupt):
        pass
    except HomerError as error:
        run.error = str(error)
    except BaseException as error:
        run.error = f"{GONE}: {type(error).__name__}"
        raise
    finally:
        run.said = None
