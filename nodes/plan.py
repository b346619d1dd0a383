"""Plan: splits the question into at most five atomic subtasks."""

from __future__ import annotations

from agent.prompt_context import attempt, decision_context_of
from agent.run_context import RunContext
from agent.state import State, plain, question_of
from domain.ledger import new_ledger
from domain.trajectory import Planned


def plan(state: State, context: RunContext) -> State:
    """Ask for a plan and check it; the question itself is the plan if there is none."""
    decide = context.reasoner.plan
    drafts = (
        attempt(
            context, "plan", decision_context_of(state, context), decide, context.settings.retries
        )
        or ()
    )
    ledger, dropped = new_ledger(drafts, question_of(state).text, context.settings)
    context.recorder.add(Planned(subtasks=ledger.subtasks, dropped=tuple(dropped)))
    return {"ledger": plain(ledger), "next": "progress"}
