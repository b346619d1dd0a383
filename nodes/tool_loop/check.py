"""Guard: an action is carried out only if its tool can take it; else another is requested."""

from __future__ import annotations

from agent.prompt_context import decision_context_of
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, action_of, plain
from domain.asking import Action
from domain.errors import InputError, NotFound
from domain.trajectory import Acted, EvidenceRetrieved, Guarded

ANSWERED = "the strategy answered"
NO_ACTION = "The reply is not an action: use one of the tools, or answer."


def check(state: State, context: RunContext) -> State:
    """Accept, send back with the complaint, or after the last retry take the policy's rescue."""
    action = action_of(state)
    complaint = state.get("complaint") or complaint_about(action, context)
    _record(state, context, complaint)
    if action is not None and not complaint:
        return _accepted(action)
    tries = state.get("tries", 0) + 1
    if tries <= context.settings.retries and not context.budget.gone():
        return {"tries": tries, "complaint": complaint, "next": "act"}
    # Take the policy's rescue; the loop ends if that is refused too.
    action = context.loop.policy.rescue(decision_context_of(state, context))
    number, tries = state["round"], state.get("tries", 0) + 1
    context.recorder.add(Acted(round=number, action=action, attempt=tries))
    complaint = complaint_about(action, context)
    _record(state, context, complaint)
    if not complaint:
        return {"action": plain(action), **_accepted(action)}
    outcome = LoopOutcome(why="no reply was an action that can be carried out")
    return {"action": None, "complaint": "", "outcome": plain(outcome), "next": "synthesize"}


def complaint_about(action: Action | None, context: RunContext) -> str:
    """Return why an action cannot be carried out; "" if it can."""
    if action is None or (action.kind == "search" and action.mode is None):
        return NO_ACTION
    if action.kind == "answer":
        return ""
    try:
        tool = context.loop.strategy.tool(str(action.mode))
        tool.parse(action)
    except (InputError, NotFound) as error:
        return str(error)
    if tool.name not in context.loop.offered:
        return f"{tool.name} cannot be used here: use one of {', '.join(context.loop.offered)}"
    same = [e.round for e in context.recorder.of(EvidenceRetrieved) if _repeats(action, e)]
    return f"That search was made in round {same[0]}: make another, or answer." if same else ""


def _repeats(action: Action, earlier: EvidenceRetrieved) -> bool:
    made = (earlier.mode, earlier.query, earlier.arguments)
    return made == (action.mode, action.query, action.arguments)


def _accepted(action: Action) -> State:
    if action.kind == "search":
        return {"complaint": "", "next": "retrieve"}
    return {"outcome": plain(LoopOutcome(action=action, why=ANSWERED)), "next": "synthesize"}


def _record(state: State, context: RunContext, complaint: str) -> None:
    rule = "tool" if complaint else None
    context.recorder.add(
        Guarded(round=state["round"], accepted=not complaint, rule=rule, complaint=complaint)
    )
