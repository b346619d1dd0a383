"""Act: the reasoner searches once more, or answers."""

from __future__ import annotations

from domain.trajectory import Acted
from nodes.desk import Desk
from nodes.reasoners.port import Unreadable
from nodes.state import State, plain
from nodes.turns import turn_of


def act(state: State, desk: Desk) -> State:
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
