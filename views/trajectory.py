"""A trajectory for display: its rounds, computed from its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from domain.asking import Action, Answer, Evidence, Question, Subtask
from domain.skills import StrategyChoice
from domain.trajectory import (
    Acted,
    AnswerProposed,
    Assessed,
    Ended,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Guarded,
    ModelCalled,
    Planned,
    Progressed,
    Replanned,
    RoundClosed,
    RoundOpened,
    choice_of,
)
from store.queries.trajectories import StoredTrajectory, events_of, find_trajectory

if TYPE_CHECKING:
    from store.database import Store


@dataclass(frozen=True)
class Round:
    """One round: the subtask and action, the result, and what followed from it.

    ``refusals`` are the guard's complaints; ``notes`` what the harness decided, in order.
    """

    number: int
    subtask: str
    text: str
    focus: str | None = None
    action: Action | None = None
    refusals: tuple[str, ...] = ()
    found: EvidenceRetrieved | None = None
    assessed: Assessed | None = None
    proposal: AnswerProposed | None = None
    ledger: tuple[Subtask, ...] = ()
    notes: tuple[str, ...] = ()
    calls: tuple[ModelCalled, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return what its search found; nothing if it made none."""
        return self.found.evidence if self.found else ()


@dataclass(frozen=True)
class History:
    """A whole trajectory. ``calls`` are all its model calls, including those outside rounds."""

    id: str
    question: Question
    machine: str
    profile: str
    state: str
    plan: tuple[Subtask, ...]
    rounds: tuple[Round, ...]
    answer: Answer | None
    tokens: int
    seconds: float
    cost_usd: float
    calls: tuple[ModelCalled, ...]
    errors: tuple[Failed, ...]
    why: str = ""
    events: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def choice(self) -> StrategyChoice | None:
        """Return how the strategy was chosen; None where it was named."""
        return choice_of(self.events)

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Return what the rounds found, by ref, in the order of finding."""
        by_ref: dict[str, Evidence] = {}
        for round_ in self.rounds:
            for evidence in round_.evidence:
                by_ref.setdefault(evidence.ref, evidence)
        return by_ref


def load_history(store: Store, name: str) -> History:
    """Return the trajectory whose id is or begins with ``name``.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several.
    """
    with store.begin() as session:
        row = find_trajectory(session, name)
        return history_of(row, events_of(session, row.id))


def history_of(row: StoredTrajectory, events: Sequence[Event]) -> History:
    """Return the view of a trajectory, computed from its events."""
    calls = tuple(e for e in events if isinstance(e, ModelCalled))
    ends = [e for e in events if isinstance(e, Ended)]
    plans = [e for e in events if isinstance(e, Planned)]
    return History(
        id=row.id,
        question=row.question,
        machine=row.machine,
        profile=row.profile,
        state=row.state,
        plan=plans[0].subtasks if plans else (),
        rounds=rounds_of(events),
        answer=row.answer,
        tokens=row.tokens,
        seconds=row.seconds,
        cost_usd=sum(call.cost_usd for call in calls),
        calls=calls,
        errors=tuple(e for e in events if isinstance(e, Failed)),
        why=ends[-1].why if ends else "",
        events=tuple(events),
    )


def rounds_of(events: Sequence[Event]) -> tuple[Round, ...]:
    """Return the rounds in order; an event belongs to the round of its number."""
    rounds: dict[int, Round] = {}
    for event in events:
        if isinstance(event, RoundOpened):
            rounds[event.round] = Round(event.round, event.subtask, event.text, event.focus)
        elif event.round in rounds:
            rounds[event.round] = _with_event(rounds[event.round], event)
    return tuple(rounds[number] for number in sorted(rounds))


def _with_event(round_: Round, event: Event) -> Round:
    match event:
        case Acted():
            return replace(round_, action=event.action)
        case Guarded(accepted=False):
            return replace(round_, refusals=(*round_.refusals, event.complaint))
        case EvidenceRetrieved():
            return replace(round_, found=event)
        case Assessed():
            return replace(round_, assessed=event)
        case AnswerProposed():
            return replace(round_, proposal=event)
        case ModelCalled():
            return replace(round_, calls=(*round_.calls, event))
        case RoundClosed():
            closed = replace(round_, ledger=event.subtasks)
            return _with_note(closed, event.warning) if event.warning else closed
        case _:
            return _with_note(round_, _note(event))


def _with_note(round_: Round, note: str) -> Round:
    return replace(round_, notes=(*round_.notes, note)) if note else round_


def _note(event: Event) -> str:
    """Return what the harness did, in words; empty for events that are shown elsewhere."""
    match event:
        case Forced():
            return f"next mode forced to {event.mode}: {event.reason}"
        case Replanned(empty=True):
            return "the plan stayed as it was"
        case Replanned():
            return "plan repaired: " + "; ".join(event.reasons)
        case Progressed(verdict="replan" | "finish"):
            return f"{event.verdict}: " + "; ".join(event.reasons)
        case Failed():
            return f"{event.where} failed: {event.message}"
        case _:
            return ""
