"""Begin: the question is the only subtask, which holds everything that is found."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, plain, question_of
from domain.asking import Ledger, Subtask
from domain.trajectory import Planned

TASK = "t1"
"""The id of the only subtask."""


def begin(state: State, context: RunContext) -> State:
    """Record the question as the plan."""
    ledger = Ledger(subtasks=(Subtask(id=TASK, text=question_of(state).text),))
    context.recorder.add(Planned(subtasks=ledger.subtasks))
    return {"ledger": plain(ledger), "next": "schedule"}
