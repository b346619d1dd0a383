"""Schedule: opens a round for the next subtask."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import LoopOutcome, State, focus_of, ledger_of, plain
from domain.ledger import begin_attempt, next_subtask
from domain.trajectory import Progressed, RoundOpened

NOTHING_LEFT = "no subtask can be searched any further"
"""The reason to finish, which is recorded."""


def schedule(state: State, context: RunContext) -> State:
    """Open a round, which counts as an attempt; finish where no subtask can be worked on."""
    ledger, number = ledger_of(state), state.get("round", 0) + 1
    task = next_subtask(ledger, context.settings)
    if task is None:
        why = NOTHING_LEFT
        context.recorder.add(Progressed(round=number - 1, verdict="finish", reasons=(why,)))
        return {"next": "synthesize", "outcome": plain(LoopOutcome(why=why))}
    focus = focus_of(state)
    context.recorder.add(
        RoundOpened(
            round=number,
            subtask=task.id,
            text=task.text,
            attempt=task.attempts + 1,
            focus=focus.ref if focus else None,
        )
    )
    return {
        "ledger": plain(begin_attempt(ledger, task.id)),
        "round": number,
        "current": task.id,
        "action": None,
        "tries": 0,
        "complaint": "",
        "next": "act",
    }
