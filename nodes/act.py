"""Act: the reasoner searches or answers, the guard lets through what keeps the rules."""

from __future__ import annotations

from agent.harness.constrain import ActionBounds, check
from agent.harness.correct import forced_mode, harness_search
from agent.prompt_context import decision_context_of, last_neighbours, shown_tags
from agent.reasoners.port import Unreadable
from agent.run_context import RunContext
from agent.state import (
    ProgressLedger,
    State,
    action_of,
    current_of,
    focus_of,
    plain,
    progress_of,
    question_of,
)
from domain.asking import Mode
from domain.trajectory import Acted, EvidenceRetrieved, Forced

# Act: the reasoner searches once more, or answers.


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


# Guard: an action is carried out only if it keeps the rules; else another is requested.


def guard(state: State, context: RunContext) -> State:
    """Accept, send back with the complaint, or after the last retry let the harness search."""
    action, number = action_of(state), state["round"]
    verdict = check(action, bounds_of(state, context), context.settings)
    if action is None and state.get("complaint"):
        verdict = verdict.model_copy(update={"complaint": state["complaint"]})
    context.recorder.add(verdict.model_copy(update={"round": number}))
    if verdict.accepted and action is not None:
        return {"next": "retrieve" if action.kind == "search" else "answer"}
    tries = state.get("tries", 0) + 1
    if tries <= context.settings.retries and not context.budget.gone():
        return {"tries": tries, "complaint": verdict.complaint, "next": "act"}
    # Let the harness search itself; the round stays empty only if that is refused too.
    task, number = current_of(state), state["round"]
    if task is None:
        return {"action": None, "next": "record"}
    forced = decision_context_of(state, context).forced
    labels = [neighbour.label for neighbour in last_neighbours(context)]
    action = harness_search(task, forced, focus_of(state), labels, context.settings.memory.modes)
    rules = bounds_of(state, context).model_copy(update={"subtask": "", "forced": None})
    verdict = check(action, rules, context.settings)
    context.recorder.add(Acted(round=number, action=action, attempt=state.get("tries", 0) + 1))
    context.recorder.add(verdict.model_copy(update={"round": number}))
    return {
        "action": plain(action) if verdict.accepted else None,
        "complaint": "",
        "next": "retrieve" if verdict.accepted else "record",
    }


def bounds_of(state: State, context: RunContext) -> ActionBounds:
    """Return what the rules look at."""
    task, forced = current_of(state), state.get("forced")
    return ActionBounds(
        options=question_of(state).options,
        letters=task.options if task else (),
        subtask=task.text if task else "",
        searched=context.recorder.of(EvidenceRetrieved),
        evidence=frozenset(context.recorder.evidence()),
        tags=shown_tags(question_of(state), context),
        forced=Mode(forced) if forced else None,
        modes=context.settings.memory.modes,
        focused=focus_of(state) is not None,
    )


# Force: sets the next mode of a search that is locked on.


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
