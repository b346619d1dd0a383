"""Act: the reasoner searches once more, or answers."""

from __future__ import annotations

from agent.prompt_context import turn_of
from agent.reasoners.port import Unreadable
from agent.run_context import RunContext
from agent.state import State, plain
from domain.trajectory import Acted


def act(state: State, desk: RunContext) -> State:
    """One decision; what cannot be read as one goes to the guard as none, with the reason."""
    complaint = ""
    try:
        action = desk.recorder.past.action() or desk.reasoner.act(turn_of(state, desk))
    except Unreadable as error:
        action, complaint = None, str(error)
    tries = state.get("tries", 0)
    desk.recorder.add(Acted(round=state["round"], action=action, attempt=tries))
    return {
        "action": plain(action) if action else None,
        "complaint": complaint,
        "next": "guard",
    }
