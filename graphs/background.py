"""Questions answered in background threads, found again by their trajectory.

A run continues in a thread of this process, watched or not. Every step is recorded, so a process
that ends loses nothing but time: ``resume`` continues the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from domain.asking import Question
from domain.errors import HomerError
from domain.trajectory import ForkEdit, PartialReply, RunEvent
from graphs.ask_result import StoppedEarly
from graphs.runner import Runner
from graphs.stream import Stop

GONE = "the run ended without an answer"


class BackgroundRun:
    """One run: its model's current reply, and the error if it failed."""

    def __init__(self) -> None:
        self.said: PartialReply | None = None
        self.error = ""
        self._stop = Stop()

    def tell(self, event: RunEvent) -> None:
        """Receive an event or word of the run.

        Raises:
            KeyboardInterrupt: the run is to stop.
        """
        self._stop.check()
        self.said = event if isinstance(event, PartialReply) else None

    def stop(self) -> None:
        """End at the next event or word, with the best answer so far."""
        self._stop.set()


class BackgroundRuns:
    """The runs of this process, by trajectory. Thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[BackgroundRun, threading.Thread]] = {}
        self._lock = threading.Lock()

    def ask(self, runner: Runner, question: Question, strategy: str | None = None) -> str:
        """Start answering a question in the background; return the trajectory.

        Raises:
            HomerError: as ``Runner.begin``.
        """
        run = BackgroundRun()
        state, context = runner.begin(question, run.tell, strategy=strategy)
        return self._start(state["trajectory"], run, lambda: runner.run(state, context))

    def fork(self, runner: Runner, name: str, number: int, edit: ForkEdit) -> str:
        """Start a fork in the background; return its trajectory.

        Raises:
            HomerError: as ``Runner.begin_fork``.
        """
        run = BackgroundRun()
        state, context = runner.begin_fork(name, number, edit, run.tell)
        return self._start(state["trajectory"], run, lambda: runner.run(state, context))

    def resume(self, runner: Runner, trajectory: str) -> str:
        """Resume an interrupted question; ``trajectory`` is its whole id."""
        run = BackgroundRun()
        return self._start(trajectory, run, lambda: runner.resume(trajectory, run.tell))

    def running(self, trajectory: str) -> bool:
        """Check whether this process runs the trajectory."""
        entry = self._runs.get(trajectory)
        return entry is not None and entry[1].is_alive()

    def said(self, trajectory: str) -> PartialReply | None:
        """Return what the model is saying, if it is."""
        entry = self._runs.get(trajectory)
        return entry[0].said if entry else None

    def error(self, trajectory: str) -> str:
        """Return why the run ended without an answer; "" if it did not."""
        entry = self._runs.get(trajectory)
        return entry[0].error if entry else ""

    def stop(self, trajectory: str) -> None:
        """Stop a run of this process with the best answer so far."""
        if self.running(trajectory):
            self._runs[trajectory][0].stop()

    def wait(self, trajectory: str, timeout_s: float | None = None) -> None:
        """Wait until the run has ended."""
        entry = self._runs.get(trajectory)
        if entry is not None:
            entry[1].join(timeout_s)

    def _start(self, trajectory: str, run: BackgroundRun, work: Callable[[], object]) -> str:
        thread = threading.Thread(
            target=_run_safely, args=(run, work), name=f"ask {trajectory}", daemon=True
        )
        with self._lock:
            self._runs[trajectory] = (run, thread)
        thread.start()
        return trajectory


def _run_safely(run: BackgroundRun, work: Callable[[], object]) -> None:
    """Run to the end of the thread, and note the error, since nobody can catch it."""
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
