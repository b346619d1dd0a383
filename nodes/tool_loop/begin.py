"""Begin: the question is the only subtask, which holds everything that is found."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, plain, question_of
from domain.asking import Ledger, Subtask
from domain.trajectory import Planned, SkillsRouted

TASK = "t1"
"""The id of the only subtask."""


def begin(state: State, context: RunContext) -> State:
    """Record the question as the plan, after the skill by which the strategy was chosen, if any."""
    ledger = Ledger(subtasks=(Subtask(id=TASK, text=question_of(state).text),))
    if context.recorder.chosen_by is not None:
        context.recorder.add(SkillsRouted(skills=(context.recorder.chosen_by,)))
    context.recorder.add(Planned(subtasks=ledger.subtasks))
    return {"ledger": plain(ledger), "next": "schedule"}
