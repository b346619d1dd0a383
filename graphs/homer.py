"""The HOMER machine: which step follows which. The steps are in ``nodes/``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.run_context import RunContext
from agent.state import LoopOutcome, State, plain
from domain.errors import BudgetExceeded
from domain.trajectory import Failed
from nodes.act import act
from nodes.answer import answer
from nodes.assess import assess
from nodes.bind import bind
from nodes.close_round import record
from nodes.finish import finish
from nodes.force import force
from nodes.guard import guard
from nodes.plan import plan
from nodes.progress import progress
from nodes.replan import replan
from nodes.retrieve import retrieve
from nodes.route import route
from nodes.schedule import schedule
from nodes.synthesize import synthesize

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

Node = Callable[[State, RunContext], State]
ContextOf = Callable[[State], RunContext]

STEPS: dict[str, tuple[Node, tuple[str, ...]]] = {
    "route": (route, ("plan",)),
    "plan": (plan, ("progress", "synthesize")),
    "progress": (progress, ("schedule", "replan", "synthesize")),
    "replan": (replan, ("schedule", "synthesize")),
    "schedule": (schedule, ("act", "synthesize")),
    "act": (act, ("guard", "synthesize")),
    "guard": (guard, ("act", "retrieve", "answer", "record")),
    "retrieve": (retrieve, ("bind", "record")),
    "bind": (bind, ("assess",)),
    "assess": (assess, ("record", "synthesize")),
    "record": (record, ("force", "progress")),
    "force": (force, ("progress",)),
    "answer": (answer, ("finish", "record")),
    "synthesize": (synthesize, ("finish",)),
    "finish": (finish, ("end",)),
}
"""Each step with those that may follow it; a step that calls a model may exhaust a budget."""

ROUND = "act"
"""The central step of a round, where a fork may start: its subtask is chosen by then."""

BOUNDARIES = frozenset({"plan", "replan", ROUND, "retrieve", "assess", "synthesize", "finish"})
"""Steps that call a model or a tool: before each, everything so far is on disk."""


ENTRIES = ("route", "plan", "schedule", ROUND)
"""Where a run may begin: at the start, or, as a fork, at a round."""


def recursion_limit(rounds: int, retries: int) -> int:
    """Return the most steps of a run: 9 per round, two more per retry, and the ends."""
    return rounds * (9 + 2 * (retries + 1)) + 10


def build(checkpointer: BaseCheckpointSaver[str] | None = None) -> CompiledStateGraph[Any, Any]:
    """Compile the machine; its context is a ``RunContext``, its thread id the trajectory's."""
    # LangGraph is slow to import; views of a trajectory need only the names of the steps.
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State, context_schema=RunContext)
    add_steps(graph, END)
    graph.add_conditional_edges(START, first, {name: name for name in ENTRIES})
    return graph.compile(checkpointer=checkpointer)


def add_steps(
    graph: StateGraph[Any, Any, Any, Any], end: str, context_of: ContextOf | None = None
) -> None:
    """Add the machine's steps to a graph; ``end`` follows the last.

    ``context_of`` finds the run's context by its state, if that is not the graph's context.
    """
    for name, (node, following) in STEPS.items():
        destinations = tuple(
            end if destination == "end" else destination for destination in following
        )
        graph.add_node(name, _step(name, node, end, context_of), destinations=destinations)


def first(state: State) -> str:
    """Return the first step of a run."""
    return state["next"]


def _step(name: str, node: Node, end: str, context_of: ContextOf | None) -> Any:
    """Wrap a node for LangGraph: its events are on disk before its checkpoint is.

    If a step fails, the runner flushes the recorder.
    """
    # Slow to import, as in ``build``.
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    def run(state: State, runtime: Runtime[RunContext]) -> Command[str]:
        update = take(name, node, state, context_of(state) if context_of else runtime.context)
        following = update["next"]
        return Command(update=update, goto=end if following == "end" else following)

    run.__annotations__ = {"state": State, "runtime": Runtime[RunContext], "return": Command[str]}
    return run


def take(name: str, node: Node, state: State, context: RunContext) -> State:
    """Take one step: update the state, and write its events before a boundary."""
    context.recorder.step = name
    with context.rounds.during(name, state.get("round", 0)):
        return _take(name, node, state, context)


def _take(name: str, node: Node, state: State, context: RunContext) -> State:
    if name in BOUNDARIES:
        context.recorder.replay_source.halt(context.recorder.seq, state)
    try:
        update = node(state, context)
    except BudgetExceeded as error:
        update = _out_of_budget(name, state, context, error)
    if update["next"] in BOUNDARIES or update["next"] == "end":
        context.recorder.flush(step=True)
    counters: State = {
        "seq": context.recorder.seq,
        "tokens": context.budget.tokens,
        "clock": context.budget.clock,
        "looks": context.budget.looks,
    }
    return update | counters


def _out_of_budget(name: str, state: State, context: RunContext, error: BudgetExceeded) -> State:
    message = str(error)
    context.recorder.add(Failed(round=state.get("round", 0), where=name, message=message))
    return {"next": "synthesize", "outcome": plain(LoopOutcome(why=message))}
