"""Runs reasoning machines on questions: what one run needs is put together here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from langchain_core.runnables import RunnableConfig

from domain.asking import Question
from domain.errors import NotFound
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
from store.queries.trajectories import (
    add_trajectory,
    end_trajectory,
    events_of,
    find_trajectory,
    prune_checkpoints,
)

if TYPE_CHECKING:
    from graphs.desks import Desks
    from models.toolbox import Toolbox
    from store.database import Store

MACHINE = "homer"

OnEvent = Callable[[Event], None]


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

    def ask(self, question: Question, on_event: OnEvent | None = None) -> Asked:
        """Answer one question; see ``graphs.ask.ask``."""
        with self._store.begin() as session:
            view = view_of(session, question.videos, question.as_of_ms)
            trajectory = secrets.token_hex(8)
            name = self._profile.name
            add_trajectory(session, trajectory, question, view, MACHINE, name)
        meter = Meter(self._profile.settings.ask)
        recorder = Recorder(self._store, trajectory, self._checkpoints.append, on_event)
        desk = self._desks.desk(view, recorder, meter)
        recorder.add(self._asked(question, view, desk))
        recorder.flush()
        return self._run(_start(trajectory, question, view), desk)

    def resume(self, name: str, on_event: OnEvent | None = None) -> Asked:
        """Go on with a question that was broken off, from its last finished step.

        ``on_event`` sees what happens from there on; a question that was answered is not asked
        again.

        Raises:
            NotFound: no trajectory goes by ``name``, or it has nothing to go on from.
            Ambiguous: several do.
        """
        with self._store.begin() as session:
            row = find_trajectory(session, name)
        if row.answer is not None:
            return Asked(row.id, row.answer, _rounds(self._store, row.id), row.tokens, row.seconds)
        state = self._graph.get_state(_config(row.id)).values
        if not state:
            raise NotFound(f"trajectory {row.id} was broken off before its first step: ask again")
        meter = Meter(self._profile.settings.ask, state.get("tokens", 0), state.get("clock", 0.0))
        recorder = Recorder(self._store, row.id, self._checkpoints.append, on_event)
        recorder.rewind(state.get("seq", 1))
        return self._run(None, self._desks.desk(row.view, recorder, meter))

    def _asked(self, question: Question, view: MemoryView, desk: Desk) -> QuestionAsked:
        return QuestionAsked(
            question=question,
            machine=MACHINE,
            profile=self._profile.name,
            reasoner=desk.reasoner.name,
            view=view,
        )

    def _run(self, state: State | None, desk: Desk) -> Asked:
        """Run the machine from ``state``, or from its last checkpoint, to the end."""
        limit = recursion_limit(desk.settings.rounds, desk.settings.retries)
        config = _config(desk.recorder.trajectory) | RunnableConfig(recursion_limit=limit)
        try:
            self._graph.invoke(state, config, context=desk, durability="sync")
        except BaseException as error:
            self._break_off(desk.recorder, desk.meter, error)
            raise
        return self._close(desk.recorder, desk.meter)

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


def _config(trajectory: str) -> RunnableConfig:
    return {"configurable": {"thread_id": trajectory}}


def _rounds(store: Store, trajectory: str) -> int:
    with store.begin() as session:
        events = events_of(session, trajectory)
    return max((event.round for event in events), default=0)


def _start(trajectory: str, question: Question, view: MemoryView) -> State:
    return {
        "trajectory": trajectory,
        "seq": 1,
        "question": plain(question),
        "view": plain(view),
        "round": 0,
        "next": "plan",
    }
