"""The tool loop: in each round a strategy's policy uses one tool or answers.

The question is the only subtask of its ledger, which holds everything that was found.
"""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State
from domain.asking import Action
from graphs.machine import Machine
from nodes.act import act
from nodes.finish import finish, synthesize
from nodes.tool_loop import begin, check, close_round, complaint_about, open_round, use_tool


def complaint(action: Action, start: State, context: RunContext) -> str:  # noqa: ARG001
    """Return why a fork cannot take this action; "" if it can."""
    return complaint_about(action, context)


TOOL_LOOP = Machine(
    steps={
        "begin": (begin, ("schedule",)),
        "schedule": (open_round, ("act", "synthesize")),
        "act": (act, ("guard", "synthesize")),
        "guard": (check, ("act", "retrieve", "synthesize")),
        "retrieve": (use_tool, ("record",)),
        "record": (close_round, ("schedule",)),
        "synthesize": (synthesize, ("finish",)),
        "finish": (finish, ("end",)),
    },
    start="begin",
    entries=("begin", "schedule", "act"),
    round_step="act",
    boundaries=frozenset({"act", "retrieve", "synthesize", "finish"}),
    steps_a_round=5,
    complaint=complaint,
)
