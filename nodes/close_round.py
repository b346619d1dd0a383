"""Record: the round is closed, and the progress ledger counts it."""

from __future__ import annotations

from agent.harness.correct import RoundGain, after_round
from agent.run_context import RunContext
from agent.state import State, is_first_look, ledger_of, plain, progress_of
from domain.trajectory import AnswerProposed, Assessed, EvidenceRetrieved, RoundClosed, RoundOpened
from nodes.force import stuck_in


def record(state: State, desk: RunContext) -> State:
    """Count what the round gave; its hints and its forced mode are used up.

    A round whose answer was sent back is not counted: it did not search.
    """
    number, counts = state["round"], progress_of(state)
    warning = ""
    if not any(e.round == number for e in desk.recorder.of(AnswerProposed)):
        modes = [found.mode for found in desk.recorder.of(EvidenceRetrieved)]
        counts, warning = after_round(
            counts.model_copy(update={"hints": ()}),
            number,
            finding(desk, number, first_look=is_first_look(state)),
            modes,
            desk.settings,
        )
    closed = RoundClosed(
        round=number,
        subtasks=ledger_of(state).subtasks,
        tokens=desk.meter.tokens,
        warning=warning,
    )
    desk.recorder.add(closed)
    following = "progress" if stuck_in(state, desk, counts) is None else "force"
    return {"progress": plain(counts), "forced": None, "next": following}


def finding(desk: RunContext, number: int, *, first_look: bool = False) -> RoundGain:
    """What round ``number`` gave; ``first_look``: it looked for an option for the first time."""
    found = [e for e in desk.recorder.of(EvidenceRetrieved) if e.round == number]
    known = {
        e.ref for r in desk.recorder.of(EvidenceRetrieved) if r.round < number for e in r.evidence
    }
    close = [e for r in found if r.weighed or not r.nothing_close for e in r.evidence]
    opened = [e.focus for e in desk.recorder.of(RoundOpened) if e.round == number]
    focus = found[-1].focus if found else None
    assessed = [e for e in desk.recorder.of(Assessed) if e.round == number]
    return RoundGain(
        empty=not close,
        new_evidence=any(first_look or e.ref not in known for e in close),
        low=any(a.low for a in assessed) or not assessed,
        same_focus=focus is not None and focus in opened and not first_look,
    )
