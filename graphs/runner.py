"""Runs reasoning machines on questions: what one run needs is put together here."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.runnables import RunnableConfig

from agent.budget import RunBudget
from agent.harness.constrain import check
from agent.model_calls import recorded_calls
from agent.recorder import Recorder
from agent.replay_source import going_on
from agent.run_context import RunContext
from agent.state import State, check_state, plain, question_of
from agent.state import view_of as scope_of
from domain import faults
from domain.asking import Question
from domain.audit import Deed
from domain.errors import DatabaseError, InputError, NotFound
from domain.live import RunListener
from domain.settings import AskSettings
from domain.trajectory import VERSION, Ended, Event, Failed, Forked, ForkEdit, QuestionAsked, Setup
from domain.view import MemoryView
from graphs.ask import AskResult, StoppedEarly
from graphs.checkpoints import Checkpoints
from graphs.forks import Parent, as_opened, forked, round_state
from graphs.homer import BOUNDARIES, ROUND, build, recursion_limit
from nodes.guard import bounds_of
from nodes.stop import stop
from store.driver import driver_of
from store.queries.audit import note
from store.queries.clips import view_of
from store.queries.trajectories import (
    StoredTrajectory,
    add_trajectory,
    end_trajectory,
    events_of,
    find_trajectory,
    is_known,
    prune_checkpoints,
    reopen_trajectory,
    stop_broken_off,
)
from telemetry import tracing

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from graphs.context_factory import ContextFactory
    from models.toolbox import Toolbox
    from store.database import Store

MACHINE = "homer"
BROKEN_OFF = "machine"
"""Where the last event says that a run failed when it was broken off."""

DONE = "done"

Linked = Callable[["Session", str], None]
"""Is given the open transaction and the id of the trajectory that is begun in it."""


class Runner:
    """Asks any number of questions of one memory, from any number of threads.

    Args:
        store: the memory.
        toolbox: the models of a profile.
        desks: what a run works with; the default is what the profile names.
        settings: other than the profile's, for runs that have none on record.
        attended: somebody waits for the answers, so that what nobody waits for stands back.
    """

    def __init__(
        self,
        store: Store,
        toolbox: Toolbox,
        desks: ContextFactory | None = None,
        settings: AskSettings | None = None,
        *,
        attended: bool = True,
    ) -> None:
        from graphs.context_factory import ProfileContexts

        self._store = store
        self._turn = store.turns.person if attended else nullcontext
        self._profile = toolbox.profile
        self._settings = settings or self._profile.settings.ask
        self._desks = desks or ProfileContexts(store, toolbox, self._settings)
        self._checkpoints = Checkpoints(store, BOUNDARIES)
        self._claims = self._checkpoints.claims
        self._graph = build(self._checkpoints.saver)
        with store.begin() as session:
            stop_broken_off(session)

    def ask(
        self, question: Question, on_event: RunListener | None = None, linked: Linked | None = None
    ) -> AskResult:
        """Answer one question; see ``graphs.ask.ask``.

        ``linked`` is called in the transaction that puts the question on record.

        Raises:
            StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
        """
        return self.run(*self.begin(question, on_event, linked))

    def begin(
        self, question: Question, on_event: RunListener | None = None, linked: Linked | None = None
    ) -> tuple[State, RunContext]:
        """Put a question on record: the state to start from, and what its run works with."""
        trajectory = secrets.token_hex(8)
        with self._claimed(trajectory), self._store.begin() as session:
            view = view_of(session, question.videos, question.as_of_ms)
            name = self._profile.name
            add_trajectory(session, trajectory, question, view, MACHINE, name)
            note(session, Deed.ASKED, trajectory)
            if linked is not None:
                linked(session, trajectory)
        recorder = self._recorder(trajectory, on_event)
        faults.fault_point(faults.FaultPoint.QUESTION_ADDED)
        state = _start(trajectory, question, view)
        return state, self._ready(state, recorder, view)

    def resume(self, name: str, on_event: RunListener | None = None) -> AskResult:
        """Go on with a question that was broken off, from its last finished step.

        Calls that were answered and recorded are not made again. ``on_event`` sees what happens
        from there on; a question that was answered is not asked again.

        Raises:
            NotFound: no trajectory goes by ``name``.
            Ambiguous: several do.
            InputError: another process is at work on it.
        """
        with self._store.begin() as session:
            row = find_trajectory(session, name)
        if row.state != DONE and not self._claim(row.id):
            raise InputError(f"trajectory {row.id} is being searched at this moment: wait for it")
        with self._store.begin() as session:
            row = find_trajectory(session, row.id)
            if row.state != DONE:
                reopen_trajectory(session, row.id)
            events, calls = events_of(session, row.id), recorded_calls(session, row.id)
        if row.answer is not None and row.state == DONE:
            self._claims.give_back(row.id)
            return AskResult(row.id, row.answer, _rounds(events), row.tokens, row.seconds)
        recorder = self._recorder(row.id, on_event)
        with self._store.failures_told():
            saved = self._graph.get_state(_config(row.id)).values
        state = check_state(saved or dict(start_of(row, events)), row.id)
        recorder.rewind(state["seq"])
        recorder.past = going_on(calls, recorder.events)
        return self.run(state, self._ready(state, recorder, row.view), saved=bool(saved))

    def fork(
        self, name: str, number: int, edit: ForkEdit, on_event: RunListener | None = None
    ) -> AskResult:
        """Go on from round ``number`` of a trajectory as a new one, with ``edit``.

        What came before the round is taken over; models are called from there on only. Raises what
        ``begin_fork`` and ``run`` do.
        """
        return self.run(*self.begin_fork(name, number, edit, on_event))

    def begin_fork(
        self, name: str, number: int, edit: ForkEdit, on_event: RunListener | None = None
    ) -> tuple[State, RunContext]:
        """Put a fork on record: the state to start from, and what its run works with.

        Raises:
            NotFound: there is no such trajectory or round.
            Ambiguous: several trajectories go by ``name``.
            InputError: the edit cannot be made.
        """
        with self._store.begin() as session:
            row = find_trajectory(session, name)
            events = events_of(session, row.id)
        begun = [e for e in events if isinstance(e, Forked)][-1:]
        if begun and number < begun[0].at:
            return self.begin_fork(begun[0].parent, number, edit, on_event)
        state = round_state(self._graph.get_state_history(_config(row.id)), row.id, number)
        trajectory = secrets.token_hex(8)
        parent = Parent(row.id, events, check_state(dict(state), row.id))
        fork = forked(parent, number, edit, trajectory)
        events = [self._anew(fork[0], edit), *fork[1:]]
        self._check_edit(row, events)
        with self._claimed(trajectory), self._store.begin() as session:
            profile = self._profile.name
            add_trajectory(session, trajectory, row.question, row.view, MACHINE, profile)
            note(session, Deed.ASKED, trajectory)
        recorder = self._recorder(trajectory, on_event)
        recorder.begin_with(events)
        recorder.past = going_on((), recorder.events)
        start = start_of(row, recorder.events)
        return start, self._ready(start, recorder, row.view)

    def _check_edit(self, row: StoredTrajectory, events: Sequence[Event]) -> None:
        """See that the harness will take a fork's action, which it would leave out otherwise.

        Raises:
            InputError: it will not; says why.
        """
        fork = events[-1]
        if not isinstance(fork, Forked) or fork.edit.action is None:
            return
        recorder = self._recorder(row.id, None)
        recorder.begin_with(events)
        start = start_of(row, events)
        desk = self._desk(row.view, recorder, start)
        bounds = bounds_of(as_opened(start, desk.settings), desk)
        verdict = check(fork.edit.action, bounds, desk.settings)
        if not verdict.accepted:
            raise InputError(f"round {fork.at} cannot do that: {verdict.complaint}")

    def _anew(self, first: Event, edit: ForkEdit) -> Event:
        """A parent's first event with the models that go on."""
        if not isinstance(first, QuestionAsked):
            raise InputError("the trajectory's record does not begin with a question")
        setup = first.setup.model_copy(update=self._models())
        if edit.profile is not None:
            setup = setup.model_copy(update={"settings": self._profile.settings.ask})
        kind = self._profile.reasoner if edit.profile is not None else first.reasoner
        changes = {
            "profile": self._profile.name,
            "reasoner": kind,
            "setup": setup,
            "version": VERSION,
        }
        return first.model_copy(update=changes)

    def _claim(self, trajectory: str) -> bool:
        with self._store.failures_told():
            return self._claims.take(trajectory)

    @contextmanager
    def _claimed(self, trajectory: str) -> Iterator[None]:
        """Claims a trajectory that is about to be: it never seems to run without a process."""
        self._claim(trajectory)
        try:
            yield
        except BaseException:
            self._claims.give_back(trajectory)
            raise

    def _recorder(self, trajectory: str, on_event: RunListener | None) -> Recorder:
        return Recorder(self._store, trajectory, self._checkpoints.append, on_event)

    def _desk(self, view: MemoryView, recorder: Recorder, state: State) -> RunContext:
        """What the run works with, having spent what ``state`` says."""
        settings = recorder.setup.settings if recorder.setup else self._settings
        meter = RunBudget(settings, state.get("tokens", 0), state.get("clock", 0.0))
        meter.follow(recorder, state.get("looks", 0))
        return self._desks.desk(view, recorder, meter)

    def _asked(self, question: Question, view: MemoryView, desk: RunContext) -> QuestionAsked:
        return QuestionAsked(
            question=question,
            machine=MACHINE,
            profile=self._profile.name,
            reasoner=desk.reasoner.name,
            view=view,
            setup=self._setup(desk),
            version=VERSION,
        )

    def _setup(self, desk: RunContext) -> Setup:
        return Setup(
            settings=desk.settings,
            people=desk.people,
            languages=desk.languages,
            calibration=self._profile.calibration,
            **self._models(),
        )

    def _models(self) -> dict[str, Any]:
        llm = self._profile.reasoner == "llm"
        spec = self._profile.chat_for("reasoner") if llm else None
        return {"model": spec.model if spec else "", "sees": bool(spec and spec.images)}

    def desk_at(self, state: State) -> RunContext:
        """What a run works with that goes on from ``state``; later events are forgotten."""
        recorder = self._recorder(state["trajectory"], None)
        # Its claim may have been lost with a connection; what is on record is read anew after it.
        self._claims.give_back(recorder.trajectory)
        self._claim(recorder.trajectory)
        recorder.rewind(state["seq"])
        return self._ready(state, recorder, scope_of(state))

    def _ready(self, state: State, recorder: Recorder, view: MemoryView) -> RunContext:
        desk = self._desk(view, recorder, state)
        if not recorder.events:
            recorder.add(self._asked(question_of(state), view, desk))
        with self._unless_deleted(recorder.trajectory), self._store.failures_told():
            recorder.flush()
        return desk

    @contextmanager
    def _unless_deleted(self, trajectory: str) -> Iterator[None]:
        """Whatever fails since the question's row is gone is told as that."""
        try:
            yield
        except Exception as error:
            with suppress(DatabaseError), self._store.begin() as session:
                if not is_known(session, trajectory):
                    raise NotFound(
                        f"question {trajectory} was deleted while it was asked"
                    ) from error
            raise

    def run(self, state: State, desk: RunContext, *, saved: bool = False) -> AskResult:
        """Run the machine from ``state``, which may be its last checkpoint, to the end.

        Raises:
            NotFound: the question was deleted meanwhile, as with its video.
            StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
        """
        trajectory = desk.recorder.trajectory
        about = {"trajectory": trajectory, "profile": self._profile.name}
        with (
            tracing.span(tracing.Work.QUESTION, **about) as told,
            self._unless_deleted(trajectory),
        ):
            asked = self._run(state, desk, saved)
            told.fields |= {"rounds": asked.rounds, "tokens": asked.tokens}
        return asked

    def _run(self, state: State, desk: RunContext, saved: bool) -> AskResult:
        limit = recursion_limit(desk.settings.rounds, desk.settings.retries)
        config = _config(desk.recorder.trajectory) | RunnableConfig(recursion_limit=limit)
        desk.recorder.hold = self._checkpoints.hold
        try:
            with self._turn(), self._store.failures_told():
                begin = None if saved else state
                self._graph.invoke(begin, config, context=desk, durability="sync")
        except KeyboardInterrupt as error:
            raise self._stopped(desk, error) from error
        except BaseException as error:
            # Where the database is gone, the record ends here, and can be gone on with.
            with suppress(DatabaseError), self._store.failures_told():
                self._break_off(desk, error)
            raise
        else:
            return self.finish(desk)
        finally:
            desk.rounds.end()
            self._checkpoints.saver.forget(desk.recorder.trajectory)
            self._claims.give_back(desk.recorder.trajectory)

    def _stopped(self, desk: RunContext, error: KeyboardInterrupt) -> KeyboardInterrupt:
        """End with the best answer so far; the run can still be resumed from its last step."""
        recorder, meter, spent = desk.recorder, desk.meter, desk.meter.tokens
        self._checkpoints.saver.forget(recorder.trajectory)
        state = cast(State, self._graph.get_state(_config(recorder.trajectory)).values)
        if not state:
            self._break_off(desk, error)
            return error
        recorder.rewind(state["seq"])
        meter.tokens = state.get("tokens", 0)
        stop(state, desk)
        recorder.flush()
        meter.tokens = spent
        return StoppedEarly(self._ended(desk))

    def finish(self, desk: RunContext) -> AskResult:
        """Write the row's end; the checkpoints that a fork may start from stay."""
        self._checkpoints.saver.forget(desk.recorder.trajectory)
        asked = self._ended(desk, prune=True)
        self._claims.give_back(asked.trajectory_id)
        return asked

    def _ended(self, desk: RunContext, *, prune: bool = False) -> AskResult:
        recorder, meter = desk.recorder, desk.meter
        ended = recorder.of(Ended)[-1]
        answer, seconds, name = ended.answer, meter.clock, recorder.trajectory
        if answer is None:
            raise ValueError(f"trajectory {name} ended without an answer")
        faults.fault_point(faults.FaultPoint.ANSWER_WRITING)
        with self._store.begin() as session:
            self._claims.check(driver_of(session.connection()), name)
            end_trajectory(session, name, ended.state, answer, meter.tokens, seconds)
            if prune:
                prune_checkpoints(session, name, [ROUND])
        faults.fault_point(faults.FaultPoint.ANSWER_WRITTEN)
        return AskResult(name, answer, ended.rounds, meter.tokens, seconds)

    def _break_off(self, desk: RunContext, error: BaseException) -> None:
        """Say in the record why there is no answer. The checkpoints stay, to go on from."""
        recorder, meter = desk.recorder, desk.meter
        state = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        recorder.add(Failed(where=BROKEN_OFF, message=f"{type(error).__name__}: {error}"))
        recorder.flush()
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


def _rounds(events: Sequence[Event]) -> int:
    return max((event.round for event in events), default=0)


def start_of(row: StoredTrajectory, events: Sequence[Event]) -> State:
    """The state that a trajectory began from: a fork's own, else the first of all."""
    for event in reversed(events):
        if isinstance(event, Forked):
            return cast(State, event.start)
    return _start(row.id, row.question, row.view)


def _start(trajectory: str, question: Question, view: MemoryView) -> State:
    return {
        "trajectory": trajectory,
        "seq": 1,
        "question": plain(question),
        "view": plain(view),
        "round": 0,
        "next": "route",
    }
