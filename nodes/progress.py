"""Progress check: continue, repair the plan first, or finish."""

from __future__ import annotations

from agent.harness.correct import replan_reasons
from agent.prompt_context import is_last
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, ledger_of, plain, progress_of
from domain.asking import SubtaskState
from domain.ledger import is_open, next_subtask
from domain.trajectory import Progressed

ALL_RESOLVED, NOTHING_NEW = "all subtasks are resolved", "the search gives nothing new"
"""Reasons to finish, which are recorded."""


def progress(state: State, context: RunContext) -> State:
    """Check the budgets, then whether all is resolved, then whether the plan needs repair."""
    number = state.get("round", 0)
    why = _spent(state, context) or _settled(state)
    if why:
        context.recorder.add(Progressed(round=number, verdict="finish", reasons=(why,)))
        return {"next": "synthesize", "outcome": plain(LoopOutcome(why=why))}
    counts = progress_of(state)
    reasons = replan_reasons(ledger_of(state), counts, context.settings)
    if reasons and counts.replans < context.settings.replans:
        texts = tuple(reason.text for reason in reasons)
        context.recorder.add(Progressed(round=number, verdict="replan", reasons=texts))
        return {"next": "replan"}
    if next_subtask(ledger_of(state), context.settings) is None:
        why = "no subtask can be searched any further"
        context.recorder.add(Progressed(round=number, verdict="finish", reasons=(why,)))
        return {"next": "synthesize", "outcome": plain(LoopOutcome(why=why))}
    context.recorder.add(Progressed(round=number, verdict="go"))
    return {"next": "schedule"}


def _spent(state: State, context: RunContext) -> str:
    number = state.get("round", 0)
    if number >= context.settings.rounds:
        return f"all {context.settings.rounds} rounds are used"
    if number and is_last(state, context):
        return NOTHING_NEW
    return context.budget.gone()


def _settled(state: State) -> str:
    subtasks = ledger_of(state).subtasks
    if any(is_open(s) for s in subtasks):
        return ""
    resolved = any(s.state is SubtaskState.RESOLVED for s in subtasks)
    return ALL_RESOLVED if resolved else ""
