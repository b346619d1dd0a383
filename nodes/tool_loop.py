"""The steps of the tool loop: in each round one tool is used, checked and recorded."""

from __future__ import annotations

from agent.model_calls import ToolCalls
from agent.reasoners.port import Unreadable
from agent.run_context import RunContext, decision_context_of
from agent.state import LoopOutcome, State, action_of, ledger_of, plain, question_of, view_of
from agent.strategy import ToolUse
from domain import faults
from domain.asking import Action, Ledger, Subtask
from domain.errors import BudgetExceeded, InputError, NotFound
from domain.trajectory import (
    Acted,
    EvidenceRetrieved,
    Guarded,
    Planned,
    RoundClosed,
    RoundOpened,
    SkillsRouted,
)
from nodes.plan import finished, opened
from nodes.search_steps import bind, event_of, recorded

# Begin: the question is the only subtask, which holds everything that is found.

TASK = "t1"
"""The id of the only subtask."""


def begin(state: State, context: RunContext) -> State:
    """Record the question as the plan, after the skill by which the strategy was chosen, if any."""
    ledger = Ledger(subtasks=(Subtask(id=TASK, text=question_of(state).text),))
    if context.recorder.chosen_by is not None:
        context.recorder.add(SkillsRouted(skills=(context.recorder.chosen_by,)))
    context.recorder.add(Planned(subtasks=ledger.subtasks))
    return {"ledger": plain(ledger), "next": "schedule"}


# Schedule: opens a round while rounds and budget last.


def open_round(state: State, context: RunContext) -> State:
    """Open the next round, or end the loop."""
    number = state.get("round", 0) + 1
    why = (
        f"all {context.settings.rounds} rounds are used"
        if number > context.settings.rounds
        else context.budget.gone()
    )
    if why:
        return finished(context, number - 1, why)
    task = ledger_of(state).subtasks[0]
    context.recorder.add(RoundOpened(round=number, subtask=task.id, text=task.text, attempt=number))
    return opened(number, task.id)


# Guard: an action is carried out only if its tool can take it; else another is requested.

ANSWERED = "the strategy answered"
NO_ACTION = "The reply is not an action: use one of the tools, or answer."


def check_use(state: State, context: RunContext) -> State:
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
    wanted = (action.mode, action.query, action.arguments)
    made = context.recorder.of(EvidenceRetrieved)
    same = [e.round for e in made if (e.mode, e.query, e.arguments) == wanted]
    return f"That search was made in round {same[0]}: make another, or answer." if same else ""


def _accepted(action: Action) -> State:
    if action.kind == "search":
        return {"complaint": "", "next": "retrieve"}
    return {"outcome": plain(LoopOutcome(action=action, why=ANSWERED)), "next": "synthesize"}


def _record(state: State, context: RunContext, complaint: str) -> None:
    rule = "tool" if complaint else None
    context.recorder.add(
        Guarded(round=state["round"], accepted=not complaint, rule=rule, complaint=complaint)
    )


# Retrieve: uses the tool and records what it finds.


def use_tool(state: State, context: RunContext) -> State:
    """Use the action's tool, and put what it finds into the ledger."""
    action = action_of(state)
    if action is None or action.mode is None:
        return {"next": "record"}
    found = recorded(context, action) or _found(state, context, action)
    context.recorder.add(found.model_copy(update={"round": state["round"]}))
    if found.refused:
        return {"next": "record"}
    return {**bind(state, context), "next": "record"}


def _found(state: State, context: RunContext, action: Action) -> EvidenceRetrieved:
    name = str(action.mode)
    tool = context.loop.strategy.tool(name)
    called = {"mode": name, "query": action.query, "arguments": action.arguments}
    try:
        arguments, loop = tool.parse(action), context.loop
        searches = context.recorder.of(EvidenceRetrieved)
        use = ToolUse(
            seen=frozenset(e.ref for found in searches for e in found.evidence),
            model=ToolCalls(loop.calls, state["round"]) if loop.calls else None,
            without=loop.strategy.without,
        )
        retrieval = loop.run_tool(loop.strategy, tool, view_of(state), arguments, use)
    except (InputError, NotFound, Unreadable, BudgetExceeded) as error:
        refusal = {"evidence": (), "nothing_close": True, "refused": str(error)}
        return EvidenceRetrieved.model_validate({**called, **refusal})
    faults.fault_point(faults.FaultPoint.SEARCHED)
    return event_of(retrieval, state["round"]).model_copy(update=called)


# Record: closes the round.


def close_round(state: State, context: RunContext) -> State:
    """Record the ledger and the tokens spent."""
    context.recorder.add(
        RoundClosed(
            round=state["round"],
            subtasks=ledger_of(state).subtasks,
            tokens=context.budget.tokens,
        )
    )
    return {"next": "schedule"}
