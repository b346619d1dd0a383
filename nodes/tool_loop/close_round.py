"""Record: closes the round."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, ledger_of
from domain.trajectory import RoundClosed


def close_round(state: State, context: RunContext) -> State:
    """Record the ledger and the tokens spent."""
    context.recorder.add(
        RoundClosed(
            round=state["round"],
            subtasks=ledger_of(state).subtasks,
            tokens=context.budget.tokens,
        )
    )
    return {"next": "schedule"}
