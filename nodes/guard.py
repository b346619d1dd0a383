"""Guard: an action is carried out only if it keeps the rules; else another is requested."""

from __future__ import annotations

from agent.harness.constrain import ActionBounds, ActionVerdict, check
from agent.harness.correct import harness_search
from agent.prompt_context import decision_context_of, is_last, last_neighbours, searched, shown_tags
from agent.run_context import RunContext
from agent.state import State, action_of, current_of, focus_of, plain, question_of
from domain.trajectory import Acted, Guarded


def guard(state: State, context: RunContext) -> State:
    """Accept, send back with the complaint, or after the last retry let the harness search."""
    action, number = action_of(state), state["round"]
    verdict = check(action, bounds_of(state, context), context.settings)
    if action is None and state.get("complaint"):
        verdict = verdict.model_copy(update={"complaint": state["complaint"]})
    context.recorder.add(_event(number, verdict))
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
    context.recorder.add(_event(number, verdict))
    return {
        "action": plain(action) if verdict.accepted else None,
        "complaint": "",
        "next": "retrieve" if verdict.accepted else "record",
    }


def bounds_of(state: State, context: RunContext) -> ActionBounds:
    """Return what the rules look at."""
    task, forced = current_of(state), state.get("forced")
    return ActionBounds.model_validate(
        {
            "options": question_of(state).options,
            "letters": task.options if task else (),
            "subtask": task.text if task else "",
            "searched": searched(context),
            "evidence": frozenset(context.recorder.evidence()),
            "tags": shown_tags(question_of(state), context),
            "forced": forced or None,
            "modes": context.settings.memory.modes,
            "focused": focus_of(state) is not None,
            "final": is_last(state, context),
        }
    )


def _event(number: int, verdict: ActionVerdict) -> Guarded:
    return Guarded(round=number, **verdict.model_dump())
