"""Retrieve: uses the tool and records what it finds."""

from __future__ import annotations

from agent.model_calls import ToolCalls
from agent.reasoners.port import Unreadable
from agent.run_context import RunContext
from agent.state import State, action_of, view_of
from agent.strategy import ToolUse
from domain import faults
from domain.asking import Action
from domain.errors import BudgetExceeded, InputError, NotFound
from domain.trajectory import EvidenceRetrieved
from nodes.bind import bind
from nodes.retrieve import event_of, recorded


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
        arguments, use = tool.parse(action), _use(state, context)
        retrieval = context.loop.run_tool(
            context.loop.strategy, tool, view_of(state), arguments, use
        )
    except (InputError, NotFound, Unreadable, BudgetExceeded) as error:
        refusal = {"evidence": (), "nothing_close": True, "refused": str(error)}
        return EvidenceRetrieved.model_validate({**called, **refusal})
    faults.fault_point(faults.FaultPoint.SEARCHED)
    return event_of(retrieval, state["round"]).model_copy(update=called)


def _use(state: State, context: RunContext) -> ToolUse:
    loop = context.loop
    model = ToolCalls(loop.calls, state["round"]) if loop.calls else None
    return ToolUse(
        seen=frozenset(
            e.ref for found in context.recorder.of(EvidenceRetrieved) for e in found.evidence
        ),
        model=model,
        without=loop.strategy.without,
    )
