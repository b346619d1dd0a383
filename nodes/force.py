"""Force: sets the next mode of a search that is locked on."""

from __future__ import annotations

from agent.harness.correct import forced_mode
from agent.prompt_context import last_neighbours
from agent.run_context import RunContext
from agent.state import ProgressLedger, State, focus_of, plain, progress_of
from domain.asking import Mode
from domain.trajectory import Forced


def stuck_in(state: State, context: RunContext, counts: ProgressLedger) -> Mode | None:
    """Return the mode forced on a search that is locked on; None if it is not."""
    return forced_mode(counts, focus_of(state), context.settings, len(last_neighbours(context)))


def force(state: State, context: RunContext) -> State:
    """Force VIDEO after two rounds on one segment with nothing new, the next time a move."""
    counts = progress_of(state)
    mode = stuck_in(state, context, counts)
    if mode is None:
        return {"next": "progress"}
    reason = f"{counts.locked} rounds on one segment brought nothing new"
    context.recorder.add(Forced(round=state["round"], mode=mode, reason=reason))
    after = counts.model_copy(update={"forced": (*counts.forced, mode), "locked": 0})
    return {"progress": plain(after), "forced": str(mode), "next": "progress"}
