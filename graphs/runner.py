"""The runner: starts, resumes and forks runs of the reasoning machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Self, cast

from agent.model_calls import RunBudget, record_call_of
from agent.recorder import Recorder, inherited_count, source_of
from agent.run_context import RunContext
from agent.state import State
from agent.state import view_of as scope_of
from agent.strategy import Strategy
from domain import faults
from domain.asking import Question
from domain.errors import DatabaseError, InputError, NotFound
from domain.memories import MemoryView
from domain.rights import Deed
from domain.settings import AskSettings
from domain.trajectory import (
    Ended,
    Event,
    Failed,
    Forked,
    ForkEdit,
    Interrupted,
    QuestionAsked,
    RunListener,
    choice_of,
)
from graphs.ask_result import AskResult, StoppedEarly
from graphs.context_factory import ProfileContexts, choose_strategy
from graphs.forks import Parent, editable, forked
from graphs.machine import machine_of
from graphs.replay import (
    INTERRUPTED_AT,
    check_version,
    first_event,
    first_state,
    models_on_record,
    round_state,
    start_of,
)
from models.text_endpoint import recorded_embeddings
from nodes.finish import stop
from retrieval.built_views import check_any_built
from skills.library import SkillLibrary
from store.advisory_locks import TrajectoryLocks
from store.driver import driver_of
from store.migrations import recording
from store.queries.clips import memory_view
from store.queries.rights import record_deed
from store.queries.trajectories import (
    Mark,
    StoredTrajectory,
    add_trajectory,
    append_events,
    calls_of,
    delete_events,
    end_trajectory,
    events_of,
    find_trajectory,
    marks_of,
    reopen_trajectory,
    stop_abandoned,
    trajectory_exists,
)
from strategies.registry import find_strategy
from telemetry import tracing

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from graphs.context_factory import MakeContext
    from models.toolbox import Toolbox
    from store.database import Store

DONE = "done"

OnRecorded = Callable[["Session", str], None]
"""Called with the open transaction and the id of the trajectory that begins in it."""


class Runner:
    """Answers any number of questions from one memory, on any number of threads.

    Args:
        contexts: makes the context of each run; by default as the profile says.
        settings: other than the profile's, for runs without recorded ones.
        attended: a person waits for the answers, so background work yields.
    """

    def __init__(
        self,
        store: Store,
        toolbox: Toolbox,
        contexts: MakeContext | None = None,
        settings: AskSettings | None = None,
        *,
        attended: bool = True,
    ) -> None:
        self._store, self._toolbox = store, toolbox
        self._priority = store.turns.person if attended else nullcontext
        self._profile = toolbox.profile
        self._settings = settings or self._profile.settings.ask
        self._contexts = contexts or ProfileContexts(store, toolbox)
        self._skills = SkillLibrary(store, toolbox)
        self._claims = TrajectoryLocks(store)
        with store.begin() as session:
            stop_abandoned(session)

    def for_store(self, store: Store) -> Runner:
        """Return this runner on a viewer's store; it shares the connections of this one."""
        runner = copy(self)
        runner._store = store
        runner._contexts = ProfileContexts(store, self._toolbox)
        runner._skills = SkillLibrary(store, self._toolbox)
        return runner

    def ask(
        self,
        question: Question,
        on_event: RunListener | None = None,
        linked: OnRecorded | None = None,
        strategy: str | None = None,
    ) -> AskResult:
        """Answer one question; ``on_event`` gets each event as it happens, and replies as written.

        ``linked`` is called in the transaction that stores the question. ``strategy``: another than
        the settings name; ``auto``: the one that was learned for such questions.

        Raises:
            NotFound: a video is not in the library, or there is no such strategy.
            InputError: nothing was watched yet, or the memory is built of none of the videos.
            ModelError: the profile's language model cannot be reached.
            StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
        """
        return self.run(*self.begin(question, on_event, linked, strategy))

    def begin(
        self,
        question: Question,
        on_event: RunListener | None = None,
        linked: OnRecorded | None = None,
        strategy: str | None = None,
    ) -> tuple[State, RunContext]:
        """Store a question with its first event; return the state to start from and the context."""
        named, settings = strategy or self._settings.strategy, self._settings
        chosen = choose_strategy(self._store, self._skills, named, question, settings)
        asked = chosen.strategy
        trajectory = secrets.token_hex(8)
        recorder = self._recorder(trajectory, on_event, asked)
        with self._locked(trajectory):
            with self._store.begin() as session:
                view = memory_view(session, question.videos, question.as_of_ms)
                if asked.builder is not None:
                    check_any_built(session, view, asked.memory)
                # Stored at once with its first event: what was chosen is on record with the
                # question.
                self._add(session, recorder, question, view)
                state = first_state(trajectory, question, view, asked)
                context = self._make_context(view, recorder, state, chosen.settings)
                first = first_event(self._profile, question, view, context, chosen.choice)
                with recording(session):
                    append_events(driver_of(session.connection()), trajectory, 0, [first])
                if linked is not None:
                    linked(session, trajectory)
            for call in chosen.calls:
                record_call_of(self._store, trajectory, call)
            faults.fault_point(faults.FaultPoint.QUESTION_ADDED)
            recorder.begin(first)
        return state, context

    def _add(
        self, session: Session, recorder: Recorder, question: Question, view: MemoryView
    ) -> None:
        """Store the question of a new trajectory, and who asked it."""
        name, profile = recorder.trajectory, self._profile.name
        add_trajectory(session, name, question, view, recorder.strategy.name, profile)
        record_deed(session, Deed.ASKED, name)

    def resume(self, name: str, on_event: RunListener | None = None) -> AskResult:
        """Resume an interrupted question from its last finished step.

        ``on_event`` gets the events from there on. A question that was answered is not asked again.

        Raises:
            NotFound: there is no such trajectory.
            Ambiguous: several match ``name``.
            InputError: another process is running it.
            MachineChanged: another version of the machine made what is on record.
            Diverged: what is on record was changed.
        """
        with self._store.begin() as session:
            row = find_trajectory(session, name)
        with self._locked(row.id) as locked:
            if not locked and row.state != DONE:
                raise InputError(
                    f"trajectory {row.id} is being searched at this moment: wait for it"
                )
            with self._store.begin() as session:
                row = find_trajectory(session, row.id)
                events, marks = events_of(session, row.id), marks_of(session, row.id)
                if row.answer is not None and row.state == DONE:
                    if locked:
                        self._claims.give_back(row.id)
                    rounds, choice = max((e.round for e in events), default=0), choice_of(events)
                    return AskResult(row.id, row.answer, rounds, row.tokens, row.seconds, choice)
                check_version(row.id, events)
                marks = marks[: finished_steps(events, marks)]
                events = events[: len(marks)]
                state = start_of(row, events)
                calls = calls_of(session, row.id)
                delete_events(session, row.id, len(events))
                reopen_trajectory(session, row.id)
            recorder = self._recorder(row.id, on_event, find_strategy(row.machine))
            begun = inherited_count(events) + 1
            recorder.begin_with(events[:begun], events[begun:])
            # The machine takes the steps on record again, with the recorded calls and results, and
            # goes on.
            recorder.replay_source = source_of(calls, events)
            state["clock"] = clock_at(state, marks)
            context = self._ready(state, recorder, row.view)
        return self.run(state, context)

    def fork(
        self, name: str, number: int, edit: ForkEdit, on_event: RunListener | None = None
    ) -> AskResult:
        """Fork a trajectory at round ``number`` as a new one, with ``edit``.

        Earlier events are copied; models are called from that round on only. Raises what
        ``begin_fork`` and ``run`` do.
        """
        return self.run(*self.begin_fork(name, number, edit, on_event))

    def begin_fork(
        self, name: str, number: int, edit: ForkEdit, on_event: RunListener | None = None
    ) -> tuple[State, RunContext]:
        """Store a fork, and return the state to start from and the run's context.

        Raises:
            NotFound: there is no such trajectory or round.
            Ambiguous: several trajectories match ``name``.
            InputError: the edit cannot be made.
        """
        with self._store.begin() as session:
            row = find_trajectory(session, name)
            events, marks = events_of(session, row.id), marks_of(session, row.id)
        forks = [e for e in events if isinstance(e, Forked)][-1:]
        if forks and number < forks[0].at:
            return self.begin_fork(forks[0].parent, number, edit, on_event)
        strategy = find_strategy(row.machine)
        editable(events, number)  # Says which rounds there are, before the record is repeated.
        state = round_state(self._store, row, events, number)
        state["clock"] = clock_at(state, marks[: state["seq"]])
        trajectory = secrets.token_hex(8)
        parent = Parent(row.id, events, state)
        before, fork = forked(parent, number, edit, trajectory)
        first = before[0]
        if not isinstance(first, QuestionAsked):
            raise InputError("the trajectory's record does not begin with a question")
        tools = strategy.narrowed_tools(self._profile)
        models = models_on_record(self._profile)
        setup = first.setup.model_copy(update={"tools": tools, **models})
        if edit.profile is not None:
            settings = strategy.settings_from(self._profile.settings.ask)
            setup = setup.model_copy(update={"settings": settings})
        kind = self._profile.answering if edit.profile is not None else first.reasoner
        changes = {
            "profile": self._profile.name,
            "reasoner": kind,
            "setup": setup,
            "version": strategy.version,
        }
        events = [first.model_copy(update=changes), *before[1:], fork]
        self._check_edit(row, events, fork, strategy)
        recorder = self._recorder(trajectory, on_event, strategy)
        with self._locked(trajectory), self._store.begin() as session:
            self._add(session, recorder, row.question, row.view)
            with recording(session):
                append_events(driver_of(session.connection()), trajectory, 0, events)
        recorder.begin_with(events)
        recorder.replay_source = source_of((), recorder.events)
        start = cast(State, fork.start)
        return start, self._ready(start, recorder, row.view)

    def _check_edit(
        self, row: StoredTrajectory, events: Sequence[Event], fork: Forked, strategy: Strategy
    ) -> None:
        """Check that the harness will accept a fork's action, which it would skip otherwise.

        Raises:
            InputError: it will not; the message says why.
        """
        if fork.edit.action is None:
            return
        recorder = self._recorder(row.id, None, strategy)
        recorder.begin_with(events)
        start = cast(State, fork.start)
        context = self._make_context(row.view, recorder, start)
        complaint = machine_of(strategy).complaint(fork.edit.action, start, context)
        if complaint:
            raise InputError(f"round {fork.at} cannot do that: {complaint}")

    @contextmanager
    def _locked(self, trajectory: str) -> Iterator[bool]:
        """Lock a trajectory, so that it never seems to run without a process; False if it is."""
        with self._store.explaining_failures():
            locked = self._claims.take(trajectory)
        try:
            yield locked
        except BaseException:
            if locked:
                self._claims.give_back(trajectory)
            raise

    def _recorder(
        self, trajectory: str, on_event: RunListener | None, strategy: Strategy
    ) -> Recorder:
        return Recorder(self._store, trajectory, self._append, on_event, strategy=strategy)

    def _append(
        self, trajectory: str, first: int, events: Sequence[Event], marks: Sequence[Mark]
    ) -> None:
        faults.fault_point(faults.FaultPoint.EVENTS_WRITING)
        with self._claims.writing(trajectory) as connection:
            append_events(connection, trajectory, first, events, marks)
        faults.fault_point(faults.FaultPoint.EVENTS_WRITTEN)

    def _make_context(
        self,
        view: MemoryView,
        recorder: Recorder,
        state: State,
        settings: AskSettings | None = None,
    ) -> RunContext:
        """Make the run's context, with the budget spent as ``state`` says.

        ``settings``: for a run without recorded ones, other than the runner's.
        """
        own = settings or self._settings
        recorded = recorder.setup.settings if recorder.setup else own
        settings = recorder.strategy.settings_from(recorded)
        budget = RunBudget(settings, state.get("tokens", 0), state.get("clock", 0.0))
        budget.follow(recorder, state.get("looks", 0))
        return self._contexts(view, recorder, budget, settings)

    def context_at(self, state: State) -> RunContext:
        """Make the context of a run that resumes from ``state``; later events are deleted."""
        with self._store.begin() as session:
            strategy = find_strategy(find_trajectory(session, state["trajectory"]).machine)
        recorder = self._recorder(state["trajectory"], None, strategy)
        # The lock may have been lost with a connection; read the events again once it is held.
        self._claims.give_back(recorder.trajectory)
        with self._store.explaining_failures():
            self._claims.take(recorder.trajectory)
        recorder.rewind(state["seq"])
        return self._ready(state, recorder, scope_of(state))

    def _ready(self, state: State, recorder: Recorder, view: MemoryView) -> RunContext:
        context = self._make_context(view, recorder, state)
        with self._unless_deleted(recorder.trajectory), self._store.explaining_failures():
            recorder.flush()
        return context

    @contextmanager
    def _unless_deleted(self, trajectory: str) -> Iterator[None]:
        """Raise NotFound for any failure after the question's row was deleted."""
        try:
            yield
        except Exception as error:
            with suppress(DatabaseError), self._store.begin() as session:
                if not trajectory_exists(session, trajectory):
                    raise NotFound(
                        f"question {trajectory} was deleted while it was asked"
                    ) from error
            raise

    def run(self, state: State, context: RunContext) -> AskResult:
        """Run the machine from ``state`` to the end.

        Raises:
            NotFound: the question was deleted meanwhile, perhaps with its video.
            StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
        """
        trajectory = context.recorder.trajectory
        about = {"trajectory": trajectory, "profile": self._profile.name}
        with (
            tracing.span(tracing.Work.QUESTION, **about) as span,
            self._unless_deleted(trajectory),
            recorded_embeddings(partial(record_call_of, self._store, trajectory)),
        ):
            try:
                with self._priority(), self._store.explaining_failures():
                    machine_of(context.recorder.strategy).run(state, context)
            except KeyboardInterrupt as error:
                raise self._stopped(context, error) from error
            except BaseException as error:
                # If the database is gone, the record ends here and can be resumed.
                with suppress(DatabaseError), self._store.explaining_failures():
                    self._break_off(context, error)
                raise
            else:
                result = self.finish(context)
            finally:
                context.rounds.end()
                self._claims.give_back(trajectory)
            span.fields |= {"rounds": result.rounds, "tokens": result.tokens}
        return result

    def _stopped(self, context: RunContext, error: KeyboardInterrupt) -> KeyboardInterrupt:
        """End with the best answer so far; the run can still be resumed from its last step."""
        recorder, budget, spent = context.recorder, context.budget, context.budget.tokens
        state = recorder.boundary
        if state is None or recorder.ahead is not None:
            self._break_off(context, error)
            return error
        recorder.rewind(state["seq"])
        budget.tokens = state.get("tokens", 0)
        stop(state, context)
        recorder.flush()
        budget.tokens = spent
        return StoppedEarly(self._ended(context))

    def finish(self, context: RunContext) -> AskResult:
        result = self._ended(context)
        self._claims.give_back(result.trajectory_id)
        return result

    def _ended(self, context: RunContext) -> AskResult:
        recorder, budget = context.recorder, context.budget
        ended = recorder.of(Ended)[-1]
        answer, seconds, name = ended.answer, budget.clock, recorder.trajectory
        if answer is None:
            raise ValueError(f"trajectory {name} ended without an answer")
        faults.fault_point(faults.FaultPoint.ANSWER_WRITING)
        with self._store.begin() as session:
            self._claims.check(driver_of(session.connection()), name)
            end_trajectory(session, name, ended.state, answer, budget.tokens, seconds)
        faults.fault_point(faults.FaultPoint.ANSWER_WRITTEN)
        choice = choice_of(recorder.events)
        return AskResult(name, answer, ended.rounds, budget.tokens, seconds, choice)

    def _break_off(self, context: RunContext, error: BaseException) -> None:
        """Record why there is no answer, unless what is on record was not even repeated yet."""
        recorder, budget = context.recorder, context.budget
        state = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
        if recorder.ahead is None:
            recorder.add(Failed(where=INTERRUPTED_AT, message=f"{type(error).__name__}: {error}"))
            recorder.flush()
        with self._store.begin() as session:
            end_trajectory(session, recorder.trajectory, state, None, budget.tokens, budget.clock)

    def close(self) -> None:
        self._claims.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def clock_at(state: State, marks: Sequence[Mark]) -> float:
    """Return the seconds that a run had spent at the last of its marks.

    ``state``: the one it begins with, a fork with its parent's seconds.
    """
    return max([state.get("clock", 0.0), *(mark.clock for mark in marks)])


def finished_steps(events: Sequence[Event], marks: Sequence[Mark]) -> int:
    """Return how many events of an interrupted run are of steps that were finished."""
    for at, event in enumerate(events):
        # Where a person stopped the run, everything before that is finished.
        if isinstance(event, Interrupted):
            return at
    count = len(events)
    # A step that failed wrote its events before the last one, which says so.
    if events and isinstance(events[-1], Failed) and events[-1].where == INTERRUPTED_AT:
        while count > inherited_count(events) + 1 and marks[count - 1].step == marks[-1].step:
            count -= 1
    return count
