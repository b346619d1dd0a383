"""Schedule: opens a round while rounds and budget last."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import LoopOutcome, State, ledger_of, plain
from domain.trajectory import Progressed, RoundOpened


def open_round(state: State, context: RunContext) -> State:
    """Open the next round, or end the loop."""
    number = state.get("round", 0) + 1
    why = _exhausted(number, context)
    if why:
        context.recorder.add(Progressed(round=number - 1, verdict="finish", reasons=(why,)))
        return {"next": "synthesize", "outcome": plain(LoopOutcome(why=why))}
    task = ledger_of(state).subtasks[0]
    context.recorder.add(RoundOpened(round=number, subtask=task.id, text=task.text, attempt=number))
    return {
        "round": number,
        "current": task.id,
        "action": None,
        "tries": 0,
        "complaint": "",
        "next": "act",
    }


def _exhausted(number: int, context: RunContext) -> str:
    if number > context.settings.rounds:
        return f"all {context.settings.rounds} rounds are used"
    return context.budget.gone()
