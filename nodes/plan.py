"""Plan: the question becomes at most five atomic subtasks."""

from __future__ import annotations

from agent.prompt_context import attempt, turn_of
from agent.run_context import RunContext
from agent.state import State, plain, question_of
from domain.ledger import start
from domain.trajectory import Planned


def plan(state: State, desk: RunContext) -> State:
    """Ask for a plan and check it; the question itself is the plan where none can be had."""
    decide = desk.reasoner.plan
    drafts = attempt(desk, "plan", turn_of(state, desk), decide, desk.settings.retries) or ()
    ledger, dropped = start(drafts, question_of(state).text, desk.settings)
    desk.recorder.add(Planned(subtasks=ledger.subtasks, dropped=tuple(dropped)))
    return {"ledger": plain(ledger), "next": "progress"}
