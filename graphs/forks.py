"""Where a fork begins: the events and the state of a parent's round, with an edit applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agent.state import State, ledger_of, plain
from domain.asking import Action, Evidence, Ledger
from domain.errors import InputError, NotFound
from domain.ledger import Edits, Rewrite, SubtaskDraft, begin, is_open, schedule
from domain.ledger import edit as edit_ledger
from domain.settings import AskSettings
from domain.structure import Finding, StructurePart
from domain.trajectory import (
    Acted,
    Event,
    EvidenceRetrieved,
    Forked,
    ForkEdit,
    PlanLine,
    Planned,
    QuestionAsked,
    Replanned,
    RoundClosed,
    RoundOpened,
)
from graphs.homer import ROUND

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

UNLIMITED = 99


@dataclass(frozen=True)
class Parent:
    """A trajectory, and its state when one of its rounds had been opened."""

    trajectory: str
    events: Sequence[Event]
    state: State


def round_state(history: Iterable[StateSnapshot], trajectory: str, number: int) -> State:
    """The state at the first act of round ``number``, of a run's checkpoints.

    Raises:
        NotFound: no checkpoint of that round is kept.
    """
    kept = [cast(State, at.values) for at in history if at.next == (ROUND,)]
    found = [s for s in kept if s.get("round") == number and not s.get("tries")]
    if not found:
        rounds = sorted({s.get("round", 0) for s in kept})
        there = f"it has the rounds {rounds[0]} to {rounds[-1]}" if rounds else "it has none"
        raise NotFound(f"trajectory {trajectory} cannot be forked at round {number}: {there}")
    return found[-1]


def editable(events: Sequence[Event], number: int) -> ForkEdit:
    """What can be edited at round ``number``, as it was.

    Raises:
        NotFound: there is no such round.
    """
    opened = [at for at, e in enumerate(events) if isinstance(e, RoundOpened) and e.round == number]
    if not opened:
        rounds = sum(isinstance(event, RoundOpened) for event in events)
        raise NotFound(f"there is no round {number}: the trajectory has {rounds}")
    found = _found(events, number)
    return ForkEdit(
        plan=_lines(ledger_before(events[: opened[-1]])),
        action=_action(events, number),
        evidence=found.evidence if found else None,
        profile=_first(events).profile,
    )


def forked(parent: Parent, number: int, edit: ForkEdit, trajectory: str) -> tuple[Event, ...]:
    """The events that a fork begins with; the last is ``Forked``, with the state to go on from.

    What the edit leaves as it was is no edit.

    Raises:
        InputError: the edit cannot be made.
    """
    was = editable(parent.events, number)
    change = _changes(was, edit)
    found = _refound(parent, number, was, change)
    action = change.action or (was.action if found else None)
    before = list(parent.events[: parent.state["seq"]])
    state: dict[str, Any] = {**parent.state, "trajectory": trajectory}
    if change.plan is not None:
        while before[-1].round == number:
            before.pop()
        ledger = _replanned(ledger_before(before), change.plan, _first(before).setup.settings)
        state |= {"ledger": plain(ledger), "round": number - 1, "next": "schedule"}
    if change.action is not None:
        state["forced"] = None  # A person knows better than the harness what to look at.
    state["seq"] = len(before) + 1
    last = Forked(
        round=state["round"],
        parent=parent.trajectory,
        at=number,
        edit=change.model_copy(update={"action": action}),
        found=found,
        start=state,
    )
    return (*before, last)


def _changes(was: ForkEdit, edit: ForkEdit) -> ForkEdit:
    new = {name: value for name, value in edit if value != getattr(was, name)}
    return ForkEdit.model_validate(new)


def _refound(
    parent: Parent, number: int, was: ForkEdit, change: ForkEdit
) -> EvidenceRetrieved | None:
    """The round's search with other evidence, where that is changed."""
    if change.evidence is None:
        return None
    found, action = _found(parent.events, number), change.action or was.action
    if found is None or action is None or action.mode is None:
        raise InputError(f"round {number} made no search: its evidence cannot be edited")
    same = {e.ref for e in change.evidence if e in found.evidence}
    quote = found.extract
    return found.model_copy(
        update={
            "mode": action.mode,
            "query": action.query,
            "evidence": change.evidence,
            "nothing_close": not change.evidence,
            "refused": "",
            "weighed": tuple(one for one in found.weighed if one.ref in same),
            "extract": quote if quote and same.issuperset(quote.refs) else None,
            "finding": _still(found, change.evidence),
        }
    )


def _still(found: EvidenceRetrieved, evidence: Sequence[Evidence]) -> Finding | None:
    """What a structural search found, of the evidence left; where other is put, that as it is."""
    if found.finding is None or not evidence:
        return None
    if all(e in found.evidence for e in evidence):
        return found.finding.of_those({e.ref for e in evidence})
    parts = tuple(StructurePart(text=e.text, refs=(e.ref,)) for e in evidence)
    return Finding(asks=found.finding.asks, parts=parts, put=True)


def as_opened(start: State, settings: AskSettings) -> State:
    """The state in which a fork's first act is: where the plan was changed, after scheduling."""
    if start["next"] != "schedule":
        return start
    ledger = ledger_of(start)
    task = schedule(ledger, settings)
    if task is None:
        return start
    opened = plain(begin(ledger, task.id))
    return {**start, "ledger": opened, "current": task.id, "round": start["round"] + 1}


def _replanned(ledger: Ledger, lines: Sequence[PlanLine], settings: AskSettings) -> Ledger:
    """The ledger with a person's plan, who may change more at once than a model.

    Raises:
        InputError: the plan breaks a rule of the ledger; says which.
    """
    known = {subtask.id: subtask for subtask in ledger.subtasks}
    for line in lines:
        if line.id and (line.id not in known or known[line.id].depends != line.depends):
            raise InputError(f"{line.id}: only new subtasks, without an id, have new dependencies")
    kept = {line.id for line in lines}
    edits = Edits(
        rewrite=tuple(
            Rewrite(id=line.id, text=line.text)
            for line in lines
            if line.id and known[line.id].text != line.text
        ),
        abandon=tuple(s.id for s in ledger.subtasks if s.id not in kept and is_open(s)),
        add=tuple(
            SubtaskDraft(text=line.text, depends=line.depends) for line in lines if not line.id
        ),
    )
    free = {"replan_adds": UNLIMITED, "replan_abandons": UNLIMITED}
    changed, refused = edit_ledger(ledger, edits, settings.model_copy(update=free))
    if refused:
        raise InputError("the plan cannot be edited so: " + "; ".join(refused))
    return changed


def ledger_before(events: Sequence[Event]) -> Ledger:
    """The ledger as the last event that shows it has it."""
    for event in reversed(events):
        if isinstance(event, Planned | Replanned | RoundClosed):
            return Ledger(subtasks=event.subtasks)
        if isinstance(event, Forked):
            return ledger_of(cast(State, event.start))
    return Ledger()


def _lines(ledger: Ledger) -> tuple[PlanLine, ...]:
    return tuple(PlanLine(id=s.id, text=s.text, depends=s.depends) for s in ledger.subtasks)


def _action(events: Sequence[Event], number: int) -> Action | None:
    """What the round did in the end."""
    acted = [e.action for e in events if isinstance(e, Acted) and e.round == number and e.action]
    return acted[-1] if acted else None


def _found(events: Sequence[Event], number: int) -> EvidenceRetrieved | None:
    """What the round's search gave; a look over the whole view is none."""
    own = [e for e in events if e.round == number]
    acted = [at for at, e in enumerate(own) if isinstance(e, Acted)]
    later = own[acted[-1] :] if acted else []
    return next((e for e in later if isinstance(e, EvidenceRetrieved)), None)


def _first(events: Sequence[Event]) -> QuestionAsked:
    first = events[0] if events else None
    if not isinstance(first, QuestionAsked):
        raise InputError("the record does not begin with a question")
    return first
