"""Record: closes the round and counts it in the progress ledger."""

from __future__ import annotations

from agent.harness.correct import RoundGain, after_round
from agent.run_context import RunContext
from agent.state import State, is_first_look, ledger_of, plain, progress_of
from domain.asking import Mode
from domain.trajectory import (
    AnswerProposed,
    Assessed,
    EvidenceRetrieved,
    ImagesSeen,
    RoundClosed,
    RoundOpened,
)
from nodes.force import stuck_in


def record(state: State, context: RunContext) -> State:
    """Count what the round found; its hints and its forced mode are used up.

    A round whose answer was sent back is not counted: it did not search.
    """
    number, ledger = state["round"], progress_of(state)
    warning = ""
    if not any(e.round == number for e in context.recorder.of(AnswerProposed)):
        searches = context.recorder.of(EvidenceRetrieved)
        modes = [search.mode for search in searches if isinstance(search.mode, Mode)]
        ledger, warning = after_round(
            ledger.model_copy(update={"hints": ()}),
            number,
            gain_of(context, number, first_look=is_first_look(state)),
            modes,
            context.settings,
        )
    closed = RoundClosed(
        round=number,
        subtasks=ledger_of(state).subtasks,
        tokens=context.budget.tokens,
        warning=warning,
    )
    context.recorder.add(closed)
    following = "progress" if stuck_in(state, context, ledger) is None else "force"
    return {"progress": plain(ledger), "forced": None, "next": following}


def gain_of(context: RunContext, number: int, *, first_look: bool = False) -> RoundGain:
    """Return what round ``number`` found; ``first_look``: it was an option's first search."""
    searches = [e for e in context.recorder.of(EvidenceRetrieved) if e.round == number]
    known = {
        e.ref
        for r in context.recorder.of(EvidenceRetrieved)
        if r.round < number
        for e in r.evidence
    }
    looks = [e for e in context.recorder.of(ImagesSeen) if e.round == number]
    on_images = {one.ref for look in looks for one in look.seen}
    close = [
        e
        for r in searches
        for e in r.evidence
        if r.weighed or not r.nothing_close or e.ref in on_images
    ]
    opened = [e.focus for e in context.recorder.of(RoundOpened) if e.round == number]
    focus = searches[-1].focus if searches else None
    assessed = [e for e in context.recorder.of(Assessed) if e.round == number]
    return RoundGain(
        empty=not close,
        new_evidence=any(first_look or e.ref not in known for e in close),
        low=any(a.low for a in assessed) or not assessed,
        same_focus=focus is not None and focus in opened and not first_look,
    )
