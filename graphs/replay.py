"""Running a trajectory again from its record, and seeing whether the same comes of it.

No model is called or loaded, nothing is searched and nothing is written: calls, searches and
rankings come from the record. What is compared is what the machine makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from langchain_core.runnables import RunnableConfig

from agent.budget import RecordedBudget, RunBudget
from agent.model_calls import Calls, recorded_calls
from agent.reasoners.llm import LlmReasoner
from agent.reasoners.local import LocalReasoner
from agent.reasoners.port import Reasoner
from agent.recorder import Recorder
from agent.replay_source import Halt, ReplaySource, inherited, parted
from agent.run_context import RunContext
from agent.state import State
from domain.asking import Mode
from domain.errors import HomerError, InputError, MachineChanged, ReplayMiss
from domain.ranking import Aim
from domain.trajectory import (
    VERSION,
    Ended,
    Event,
    EvidenceRetrieved,
    Failed,
    Forked,
    Interrupted,
    QuestionAsked,
    TimeUp,
    canonical,
)
from domain.view import MemoryView
from graphs.homer import build, recursion_limit
from graphs.runner import BROKEN_OFF, start_of
from models.chat import CallRecord, Replay, Sink, StructuredChat
from models.endpoint import Endpoint
from models.profile import ChatSpec
from nodes.stop import stop
from retrieval.result import Retrieval
from store.queries.trajectories import StoredTrajectory, events_of, find_trajectory

if TYPE_CHECKING:
    from store.database import Store

MakeReasoner = Callable[[Recorder, RunBudget], Reasoner]


@dataclass(frozen=True)
class Divergence:
    """The first event that differs, by its number; None on a side that has no such event.

    ``why``: what the run asked for that the record does not hold, where that ended it.
    """

    at: int
    recorded: Event | None
    replayed: Event | None
    why: str = ""


@dataclass(frozen=True)
class Replayed:
    """What came of it. ``events`` are equal from the first on; ``whole`` says that none differs.

    ``ended``: the record has an end; one that was broken off is compared up to there.
    """

    trajectory: str
    events: int
    calls: int
    searches: int
    ended: bool
    divergence: Divergence | None

    @property
    def whole(self) -> bool:
        """Whether the run was the same in every event."""
        return self.divergence is None


def replay(store: Store, name: str, reasoner: MakeReasoner | None = None) -> Replayed:
    """Run the trajectory ``name`` again from its record.

    Args:
        store: where the record is; it is only read.
        name: the trajectory's id, or the beginning of it.
        reasoner: makes the one that decides; by default the recorded kind (local or llm).

    Raises:
        NotFound: there is no such trajectory.
        InputError: it has nothing on record, or was made by a machine that is not known.
        MachineChanged: it was made by another version of the machine.
    """
    with store.begin() as session:
        row = find_trajectory(session, name)
        events, calls = events_of(session, row.id), recorded_calls(session, row.id)
    if not events:
        raise InputError(f"trajectory {row.id} was broken off before anything was recorded")
    _see_that_it_is_ours(row.id, events)
    recorder, why = rerun(store, row, events, calls, reasoner)
    ended = any(isinstance(event, Ended) for event in events)
    known = [e for e in events if ended or not _is_break(e)]
    told = recorder.events if ended else recorder.events[: len(known)]
    divergence = parting(known, told, why)
    return Replayed(
        trajectory=row.id,
        events=divergence.at if divergence else len(known),
        calls=recorder.past.served,
        searches=sum(isinstance(e, EvidenceRetrieved) for e in told[inherited(events) :]),
        ended=ended,
        divergence=divergence,
    )


def _see_that_it_is_ours(trajectory: str, events: Sequence[Event]) -> None:
    """See that this machine made the record: another one rightly does other things.

    Raises:
        MachineChanged: it did not.
    """
    first = events[0]
    if isinstance(first, QuestionAsked) and first.version != VERSION:
        raise MachineChanged(
            f"trajectory {trajectory} was made by version {first.version} of the machine, this is "
            f"version {VERSION}: it can be looked at, not run again; ask the question anew"
        )


def parting(known: Sequence[Event], told: Sequence[Event], why: str = "") -> Divergence | None:
    """Where two lists of events part, clocks left out; None where they do not."""
    for at, (one, other) in enumerate(zip_longest(known, told)):
        if one is None or other is None or canonical(one) != canonical(other):
            return Divergence(at, one, other, why if other is None else "")
    return None


def _is_break(event: Event) -> bool:
    return isinstance(event, Failed) and event.where == BROKEN_OFF


def rerun(
    store: Store,
    row: StoredTrajectory,
    events: Sequence[Event],
    calls: Sequence[CallRecord],
    reasoner: MakeReasoner | None,
) -> tuple[Recorder, str]:
    """The recorder of another run, and what it asked for in vain, if that ended it."""
    own = events[inherited(events) :]
    decided = own[0].edit.action if isinstance(own[0], Forked) else None
    recorder = Recorder(store, row.id, lambda *_: None)
    recorder.begin_with(events[: len(events) - len(own) + 1])
    told, later = parted(calls, own)
    stopped = [at for at, event in enumerate(events) if isinstance(event, Interrupted)]
    halt = stopped[-1] if stopped else None
    recorder.past = ReplaySource([*told, *later], own, decided, alone=True, stop=halt)
    state = start_of(row, events)
    desk = _desk(store, recorder, _meter(recorder, state, own), calls, reasoner)
    limit = recursion_limit(desk.settings.rounds, desk.settings.retries)
    try:
        build().invoke(state, RunnableConfig(recursion_limit=limit), context=desk)
    except Halt as halt_at:
        stop(halt_at.state, desk)
    except HomerError as error:
        return recorder, str(error)
    return recorder, ""


def _meter(recorder: Recorder, state: State, own: Sequence[Event]) -> RunBudget:
    """A meter whose time is up where it was."""
    up = [event.look for event in own if isinstance(event, TimeUp)]
    setup = _first(recorder).setup
    meter = RecordedBudget(setup.settings, state.get("tokens", 0), up[0] if up else None)
    meter.follow(recorder, state.get("looks", 0))
    return meter


def _first(recorder: Recorder) -> QuestionAsked:
    first = recorder.events[0]
    if not isinstance(first, QuestionAsked):
        raise InputError(f"the record of trajectory {recorder.trajectory} has no question")
    return first


def _desk(
    store: Store,
    recorder: Recorder,
    meter: RunBudget,
    calls: Sequence[CallRecord],
    reasoner: MakeReasoner | None,
) -> RunContext:
    asked = _first(recorder)
    return RunContext(
        reasoner=reasoner(recorder, meter)
        if reasoner
        else _reasoner(store, recorder, meter, asked, calls),
        memory=_Nobody(),
        cite=recorder.past.cite,
        settings=asked.setup.settings,
        recorder=recorder,
        meter=meter,
        people=asked.setup.people,
        languages=asked.setup.languages,
    )


def _reasoner(
    store: Store,
    recorder: Recorder,
    meter: RunBudget,
    asked: QuestionAsked,
    calls: Sequence[CallRecord],
) -> Reasoner:
    if asked.reasoner == "local":
        return LocalReasoner()
    if asked.reasoner != "llm":
        raise InputError(f"a reasoner of the kind {asked.reasoner!r} cannot be replayed")
    model = asked.setup.model or (calls[0].model if calls else "none:none")
    endpoint = Endpoint(ChatSpec(model=model, images=asked.setup.sees))

    def open_chat(sink: Sink, source: Replay) -> StructuredChat:
        return StructuredChat(endpoint, asked.profile, sink, source)

    made = Calls(store, recorder, meter, open_chat)
    return LlmReasoner(made, asked.setup.settings, store.blobs.get)


class _Nobody:
    """A memory that is not to be asked."""

    def search(
        self,
        view: MemoryView,  # noqa: ARG002
        mode: Mode,
        query: str,
        focus: int | None = None,  # noqa: ARG002
        seen: frozenset[str] = frozenset(),  # noqa: ARG002
        aim: Aim | None = None,  # noqa: ARG002
    ) -> Retrieval:
        """No search.

        Raises:
            ReplayMiss: always.
        """
        raise ReplayMiss(f"the record has no search {mode} {query!r} at this place")

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:  # noqa: ARG002
        """No scores.

        Raises:
            ReplayMiss: always.
        """
        raise ReplayMiss(f"the record has no support of {claim!r} at this place")
