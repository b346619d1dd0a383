"""Force: a search that is locked on gets its next mode from the harness."""

from __future__ import annotations

from agent.harness.correct import forced_mode
from agent.prompt_context import last_neighbours
from agent.run_context import RunContext
from agent.state import ProgressLedger, State, focus_of, plain, progress_of
from domain.asking import Mode
from domain.trajectory import Forced


def stuck_in(state: State, desk: RunContext, counts: ProgressLedger) -> Mode | None:
    """The mode that a locked search is forced to; None where it is not locked."""
    return forced_mode(counts, focus_of(state), desk.settings, len(last_neighbours(desk)))


def force(state: State, desk: RunContext) -> State:
    """Two rounds on one segment with nothing new: VIDEO is forced, the next time a move."""
    counts = progress_of(state)
    mode = stuck_in(state, desk, counts)
    if mode is None:
        return {"next": "progress"}
    reason = f"{counts.locked} rounds on one segment brought nothing new"
    desk.recorder.add(Forced(round=state["round"], mode=mode, reason=reason))
    after = counts.model_copy(update={"forced": (*counts.forced, mode), "locked": 0})
    return {"progress": plain(after), "forced": str(mode), "next": "progress"}
