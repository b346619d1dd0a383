"""Runs reasoning machines on questions: what one run needs is put together here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from domain.asking import Question
from domain.trajectory import Ended, Event, Failed, QuestionAsked
from domain.view import MemoryView
from graphs.ask import Asked
from graphs.checkpoints import Checkpoints
from graphs.homer import BOUNDARIES, ROUND, build, recursion_limit
from nodes.desk import Desk
from nodes.meter import Meter
from nodes.recorder import Recorder
from nodes.state import State, plain
from store.queries.clips import view_of
from store.queries.trajectories import add_trajectory, end_trajectory, prune_checkpoints

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from graphs.desks import Desks
    from models.toolbox import Toolbox
    from store.database import Store

MACHINE = "homer"


class Asker:
    """Asks any number of questions of one memory, from any number of threads.

    Args:
        store: the memory.
        toolbox: the models of a profile.
        desks: what a run works with; the default is what the profile names.
    """

    def __init__(self, store: Store, toolbox: Toolbox, desks: Desks | None = None) -> None:
        from graphs.desks import ProfileDesks

        self._store = store
        self._profile = toolbox.profile
        self._desks = desks or ProfileDesks(store, toolbox)
        self._checkpoints = Checkpoints(store, BOUNDARIES)
        self._graph = build(self._checkpoints.saver)

    def ask(self, question: Question, on_event: Callable[[Event], None] | None = None) -> Asked:
        """Answer one question; see ``graphs.ask.ask``."""
        with self._store.begin() as session:
            view = view_of(session, question.videos, question.as_of_ms)
            trajectory = secrets.token_hex(8)
            name = self._profile.name
            add_trajectory(session, trajectory, question, view, MACHINE, name)
        meter = Meter(self._profile.settings.ask)
        recorder = Recorder(self._store, trajectory, on_event)
        try:
            desk = self._desks.desk(view, recorder, meter)
            recorder.add(self._asked(question, view, desk))
            self._run(_start(trajectory, question, view), desk)
        except BaseException as error:
            self._break_off(recorder, meter, error)
            raise
        return self._close(recorder, meter)

    def _asked(self, question: Question, view: MemoryView, desk: Desk) -> QuestionAsked:
        return QuestionAsked(
            question=question,
            machine=MACHINE,
            profile=self._profile.name,
            reasoner=desk.reasoner.name,
            view=view,
        )

    def _run(self, state: State, desk: Desk) -> None:
        limit = recursion_limit(desk.settings.rounds, desk.settings.retries)
        config: RunnableConfig = {
            "configurable": {"thread_id": desk.recorder.trajectory},
            "recursion_limit": limit,
        }
        self._graph.invoke(state, config, context=desk, durability="sync")

    def _close(self, recorder: Recorder, meter: Meter) -> Asked:
        """Write the row's end; the checkpoints that a fork may start from stay."""
        self._checkpoints.saver.forget(recorder.trajectory)
        ended = recorder.of(Ended)[-1]
        answer, seconds = ended.answer, meter.clock
        if answer is None:
            raise ValueError(f"trajectory {recorder.trajectory} ended without an answer")
        with self._store.begin() as session:
            name = recorder.trajectory
            end_trajectory(session, name, ended.state, answer, meter.tokens, seconds)
            prune_checkpoints(session, name, [ROUND])
        return Asked(recorder.trajectory, answer, ended.rounds, meter.tokens, seconds)

    def _break_off(self, recorder: Recorder, meter: Meter, error: BaseException) -> None:
        """Say in the record why there is no answer. The checkpoints stay, to go on from."""
        state = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        recorder.add(Failed(where="machine", message=f"{type(error).__name__}: {error}"))
        recorder.flush()
        self._checkpoints.saver.forget(recorder.trajectory)
        with self._store.begin() as session:
            end_trajectory(session, recorder.trajectory, state, None, meter.tokens, meter.clock)

    def close(self) -> None:
        """Give the connections back."""
        self._checkpoints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _start(trajectory: str, question: Question, view: MemoryView) -> State:
    return {
        "trajectory": trajectory,
        "seq": 0,
        "question": plain(question),
        "view": plain(view),
        "round": 0,
        "next": "plan",
    }
