"""Act: the reasoner searches once more, or answers."""

from __future__ import annotations

from agent.prompt_context import decision_context_of
from agent.reasoners.port import Unreadable
from agent.run_context import RunContext
from agent.state import State, plain
from domain.trajectory import Acted


def act(state: State, context: RunContext) -> State:
    """Record the reasoner's next action; an unreadable one goes to the guard as None."""
    complaint = ""
    try:
        action = context.recorder.replay_source.action() or context.actor.act(
            decision_context_of(state, context)
        )
    except Unreadable as error:
        action, complaint = None, str(error)
    tries = state.get("tries", 0)
    context.recorder.add(Acted(round=state["round"], action=action, attempt=tries))
    return {
        "action": plain(action) if action else None,
        "complaint": complaint,
        "next": "guard",
    }
