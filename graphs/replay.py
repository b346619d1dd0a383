"""Replays: a trajectory is run again from its record and compared with it.

No model is called or loaded, nothing is searched and nothing is written: calls, searches and
rankings come from the record. What the machine makes of them is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from agent.model_calls import Calls, RunBudget
from agent.reasoners.port import Reasoner, reads_cards
from agent.recorder import Halt, Recorder, inherited_count, source_of
from agent.run_context import RunContext
from agent.state import State, check_state, plain
from agent.strategy import PolicyParts, Tool, ToolArguments
from domain.asking import Aim, Mode
from domain.calls import CallRecord
from domain.errors import Diverged, HomerError, InputError, MachineChanged, NotFound, ReplayMiss
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.trajectory import (
    Ended,
    Event,
    EvidenceRetrieved,
    Failed,
    Forked,
    Interrupted,
    QuestionAsked,
    Setup,
    canonical_event,
)
from domain.words import marked
from graphs.context_factory import ROLES, reasoner_of, tool_loop_of
from graphs.machine import machine_of
from models.chat import Replay, Sink, StructuredChat
from models.endpoint import Endpoint
from models.specs import ChatSpec
from nodes.finish import stop
from store.queries.trajectories import StoredTrajectory, calls_of, events_of, find_trajectory
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from agent.strategy import Strategy
    from domain.asking import Question
    from domain.skills import StrategyChoice
    from models.profile import Profile
    from store.database import Store

INTERRUPTED_AT = "machine"
"""The ``where`` of the ``Failed`` event that ends an interrupted run."""

MakeReasoner = Callable[[Recorder, RunBudget], Reasoner]


@dataclass(frozen=True)
class Divergence:
    """The first event that differs, by its number; None on a side without such an event.

    ``why``: the request that the record does not hold, if that ended the run.
    """

    at: int
    recorded: Event | None
    replayed: Event | None
    why: str = ""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay.

    ``events``: how many are equal, from the first on; ``whole``: none differs. ``ended``: the
    record has an end; an interrupted one is compared up to there.
    """

    trajectory: str
    events: int
    calls: int
    searches: int
    ended: bool
    divergence: Divergence | None

    @property
    def whole(self) -> bool:
        """Check whether every event was the same."""
        return self.divergence is None

    @property
    def exit_code(self) -> int:
        """What the command that replays ends with."""
        return 0 if self.whole else Diverged.exit_code


def replay(store: Store, name: str, reasoner: MakeReasoner | None = None) -> Replayed:
    """Run the trajectory ``name`` again from its record.

    Args:
        store: holds the record; it is only read.
        name: the trajectory's id, or a prefix of it.
        reasoner: makes the reasoner; by default of the recorded kind (local, reader or llm).

    Raises:
        NotFound: there is no such trajectory.
        InputError: its record is empty, or of an unknown kind of reasoner.
        MachineChanged: another version of the machine made it.
    """
    with store.begin() as session:
        row = find_trajectory(session, name)
        events, calls = events_of(session, row.id), calls_of(session, row.id)
    if not events:
        raise InputError(f"trajectory {row.id} was broken off before anything was recorded")
    ended = any(isinstance(event, Ended) for event in events)
    recorded = [
        e for e in events if ended or not (isinstance(e, Failed) and e.where == INTERRUPTED_AT)
    ]
    recorder, why = run_from_record(store, row, recorded, calls, reasoner)
    replayed = recorder.events if ended else recorder.events[: len(recorded)]
    divergence = first_divergence(recorded, replayed, why)
    return Replayed(
        trajectory=row.id,
        events=divergence.at if divergence else len(recorded),
        calls=recorder.replay_source.served,
        searches=sum(isinstance(e, EvidenceRetrieved) for e in replayed[inherited_count(events) :]),
        ended=ended,
        divergence=divergence,
    )


def run_from_record(
    store: Store,
    row: StoredTrajectory,
    events: Sequence[Event],
    calls: Sequence[CallRecord],
    reasoner: MakeReasoner | None,
) -> tuple[Recorder, str]:
    """Return the recorder of another run, and why it ended before its end, if it did."""
    stopped = [at for at, event in enumerate(events) if isinstance(event, Interrupted)]
    context, state = _context_of(
        store, row, events, calls, lambda state: state["seq"] in stopped[-1:], reasoner
    )
    try:
        halted = _run(state, context)
        if halted is not None:
            stop(halted, context)
    except HomerError as error:
        return context.recorder, str(error)
    return context.recorder, ""


def round_state(store: Store, row: StoredTrajectory, events: Sequence[Event], number: int) -> State:
    """Return the state of a recorded run in which it first acts in round ``number``.

    Raises:
        NotFound: it did not get there.
        MachineChanged: another version of the machine made it.
        Diverged: the record was changed, and cannot be run again.
        ReplayMiss: so it was.
    """
    step = machine_of(find_strategy(row.machine)).round_step

    def opens(state: State) -> bool:
        return state["next"] == step and state["round"] == number and not state.get("tries")

    with store.begin() as session:
        calls = calls_of(session, row.id)
    context, start = _context_of(store, row, events, calls, opens, None)
    state = _run(start, context)
    if state is None:
        raise NotFound(
            f"trajectory {row.id} cannot be forked at round {number}: it did nothing in it"
        )
    return state


def check_version(trajectory: str, events: Sequence[Event]) -> None:
    """Check that this version of the strategy made the record.

    Raises:
        MachineChanged: another did, or one that is not here.
    """
    first = events[0] if events else None
    if not isinstance(first, QuestionAsked):
        return
    try:
        strategy = find_strategy(first.machine)
        now = marked(f"this is version {strategy.version}")
        if strategy.version == first.version:
            return
    except NotFound:
        now = marked("there is no such strategy here")
    raise MachineChanged(
        f"trajectory {trajectory} was made by version {first.version} of the strategy "
        f"{first.machine}, {now}: it can be looked at, not run again; ask the question anew"
    )


def first_divergence(
    recorded: Sequence[Event], replayed: Sequence[Event], why: str = ""
) -> Divergence | None:
    """Return where two lists of events diverge, ignoring clocks; None if they are equal."""
    for position, (recorded_event, replayed_event) in enumerate(zip_longest(recorded, replayed)):
        if (
            recorded_event is None
            or replayed_event is None
            or canonical_event(recorded_event) != canonical_event(replayed_event)
        ):
            return Divergence(
                position, recorded_event, replayed_event, why if replayed_event is None else ""
            )
    return None


def _context_of(
    store: Store,
    row: StoredTrajectory,
    events: Sequence[Event],
    calls: Sequence[CallRecord],
    until: Callable[[State], bool],
    reasoner: MakeReasoner | None,
) -> tuple[RunContext, State]:
    """Return what a run needs that repeats ``events`` without any model, and its first state."""
    check_version(row.id, events)
    recorder = Recorder(store, row.id, lambda *_: None, strategy=find_strategy(row.machine))
    own = inherited_count(events)
    recorder.begin_with(events[: own + 1], events[own + 1 :])
    recorder.replay_source = source_of(calls, events, alone=True, stop=until)
    state = start_of(row, events)
    question_event = recorder.events[0]
    if not isinstance(question_event, QuestionAsked):
        raise InputError(f"the record of trajectory {recorder.trajectory} has no question")
    settings = question_event.setup.settings
    # The clock stands still: time is up where the record says so.
    budget = RunBudget(settings, state.get("tokens", 0), now=lambda: 0.0)
    budget.follow(recorder, state.get("looks", 0))
    if question_event.reasoner not in ROLES:
        calls_made = None
    else:
        model = question_event.setup.model or (calls[0].model if calls else "none:none")
        profile = question_event.profile
        endpoint = Endpoint(ChatSpec(model=model, images=question_event.setup.sees))

        def open_chat(sink: Sink, source: Replay) -> StructuredChat:
            return StructuredChat(endpoint, profile, sink, source)

        calls_made = Calls(store, recorder, budget, open_chat, question_event.setup.room)
    kind = question_event.reasoner
    made = (
        reasoner(recorder, budget) if reasoner else reasoner_of(kind, calls_made, settings, store)
    )
    parts = PolicyParts(
        made,
        calls_made if reads_cards(kind) else None,
        budget,
        settings,
        lambda sha: store.blobs.get(sha),
        question_event.setup.image_model,
    )
    context = RunContext(
        reasoner=made,
        memory=_NoMemory(),
        cite=recorder.replay_source.cite,
        settings=settings,
        recorder=recorder,
        budget=budget,
        people=question_event.setup.people,
        contents=question_event.setup.contents,
        languages=question_event.setup.languages,
        writers=question_event.setup.writers,
        tool_loop=tool_loop_of(recorder.strategy, parts, _no_tool, question_event.setup.tools),
    )
    return context, state


def _run(state: State, context: RunContext) -> State | None:
    """Run the machine from a state; return the one where its source halted it, if it did."""
    try:
        machine_of(context.recorder.strategy).run(state, context)
    except Halt as halt:
        return halt.state
    return None


def _no_tool(
    _strategy: object, tool: Tool, _view: object, arguments: ToolArguments, _use: object
) -> Retrieval:
    """Refuse to use a tool.

    Raises:
        ReplayMiss: always.
    """
    raise ReplayMiss(f"the record has no {tool.name} {arguments.query!r} at this place")


class _NoMemory:
    """A memory that must not be searched."""

    def search(
        self,
        view: MemoryView,  # noqa: ARG002
        mode: Mode,
        query: str,
        focus: int | None = None,  # noqa: ARG002
        seen: frozenset[str] = frozenset(),  # noqa: ARG002
        aim: Aim | None = None,  # noqa: ARG002
        span: TimeSpan | None = None,  # noqa: ARG002
    ) -> Retrieval:
        """Refuse to search.

        Raises:
            ReplayMiss: always.
        """
        raise ReplayMiss(f"the record has no search {mode} {query!r} at this place")

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:  # noqa: ARG002
        """Refuse to score.

        Raises:
            ReplayMiss: always.
        """
        raise ReplayMiss(f"the record has no support of {claim!r} at this place")


# The state that a run starts from.


def start_of(row: StoredTrajectory, events: Sequence[Event]) -> State:
    """Return the state that a trajectory began from: its own fork's, else the very first.

    Raises:
        InputError: the fork's is not a state of the machine: its record was changed.
    """
    for event in reversed(events):
        if isinstance(event, Forked):
            return check_state(event.start, row.id)
    return first_state(row.id, row.question, row.view, find_strategy(row.machine))


def first_state(trajectory: str, question: Question, view: MemoryView, strategy: Strategy) -> State:
    """Return the state in which a machine begins to answer a question."""
    return {
        "trajectory": trajectory,
        "seq": 1,
        "question": plain(question),
        "view": plain(view),
        "round": 0,
        "next": machine_of(strategy).start,
    }


# The first event of a run: the question, and what the run decides with.


def first_event(
    profile: Profile,
    question: Question,
    view: MemoryView,
    context: RunContext,
    choice: StrategyChoice | None,
) -> QuestionAsked:
    """Return the first event of a run; ``choice`` says how its strategy was chosen, if it was."""
    setup = Setup(
        settings=context.settings,
        people=context.people,
        contents=context.contents,
        languages=context.languages,
        calibration=profile.calibration,
        tools=context.recorder.strategy.narrowed_tools(profile),
        writers=context.writers,
        **models_on_record(profile),
    )
    return QuestionAsked(
        question=question,
        machine=context.recorder.strategy.name,
        profile=profile.name,
        reasoner=context.reasoner.name,
        view=view,
        setup=setup,
        version=context.recorder.strategy.version,
        choice=choice,
    )


def models_on_record(profile: Profile) -> dict[str, Any]:
    role = ROLES.get(profile.answering)
    spec = profile.chat_for(role) if role else None
    seeing = {"sees": bool(spec and spec.images), "image_model": profile.image_model}
    named = {"model": spec.model, "room": spec.room} if spec else {"model": "", "room": None}
    return named | seeing
