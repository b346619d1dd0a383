"""Force: a search that is locked on gets its next mode from the harness."""

from __future__ import annotations

from domain.trajectory import Forced
from nodes.desk import Desk
from nodes.harness.correct import forced_mode
from nodes.state import State, focus_of, plain, progress_of


def force(state: State, desk: Desk) -> State:
    """Two rounds on one segment with nothing new: VIDEO is forced, the next time NEIGHBOR."""
    counts = progress_of(state)
    mode = forced_mode(counts, focus_of(state), desk.settings)
    if mode is None:
        return {"next": "progress"}
    reason = f"{counts.locked} rounds on one segment brought nothing new"
    desk.recorder.add(Forced(round=state["round"], mode=mode, reason=reason))
    after = counts.model_copy(update={"forced": (*counts.forced, mode), "locked": 0})
    return {"progress": plain(after), "forced": str(mode), "next": "progress"}
