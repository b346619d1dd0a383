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
DeskOf = Callable[[State], RunContext]

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
"""Each step with those that may follow it; what calls a model may find a budget gone."""

ROUND = "act"
"""The step that a round is about, where a fork may start: its subtask is chosen by then."""

BOUNDARIES = frozenset({"plan", "replan", ROUND, "retrieve", "assess", "synthesize", "finish"})
"""Steps that call a model or a tool: before each, everything so far is on disk."""


ENTRIES = ("route", "plan", "schedule", ROUND)
"""Where a run may begin: at its beginning, or, as a fork, at a round."""


def recursion_limit(rounds: int, retries: int) -> int:
    """The most steps that a run can take: 9 a round, two more a retry, and the ends."""
    return rounds * (9 + 2 * (retries + 1)) + 10


def build(checkpointer: BaseCheckpointSaver[str] | None = None) -> CompiledStateGraph[Any, Any]:
    """Compile the machine; its context is a ``RunContext``, its thread id the trajectory's."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State, context_schema=RunContext)
    add_steps(graph, END)
    graph.add_conditional_edges(START, first, {name: name for name in ENTRIES})
    return graph.compile(checkpointer=checkpointer)


def add_steps(
    graph: StateGraph[Any, Any, Any, Any], end: str, desk_of: DeskOf | None = None
) -> None:
    """Put the machine's steps into a graph; ``end`` follows the last.

    ``desk_of`` finds what a run works with by its state, where that is not the graph's context.
    """
    for name, (node, following) in STEPS.items():
        ways = tuple(end if way == "end" else way for way in following)
        graph.add_node(name, _step(name, node, end, desk_of), destinations=ways)


def first(state: State) -> str:
    """The step that a run begins with."""
    return state["next"]


def _step(name: str, node: Node, end: str, desk_of: DeskOf | None) -> Any:
    """A node as LangGraph calls it: its events are on disk before its checkpoint is.

    Where a step breaks off, whoever runs the machine flushes the recorder.
    """
    from langgraph.runtime import Runtime
    from langgraph.types import Command

    def run(state: State, runtime: Runtime[RunContext]) -> Command[str]:
        update = take(name, node, state, desk_of(state) if desk_of else runtime.context)
        following = update["next"]
        return Command(update=update, goto=end if following == "end" else following)

    run.__annotations__ = {"state": State, "runtime": Runtime[RunContext], "return": Command[str]}
    return run


def take(name: str, node: Node, state: State, desk: RunContext) -> State:
    """One step: the state's update, with its events written where the next may be far away."""
    desk.recorder.step = name
    with desk.rounds.during(name, state.get("round", 0)):
        return _take(name, node, state, desk)


def _take(name: str, node: Node, state: State, desk: RunContext) -> State:
    if name in BOUNDARIES:
        desk.recorder.past.halt(desk.recorder.seq, state)
    try:
        update = node(state, desk)
    except BudgetExceeded as error:
        update = _out_of_budget(name, state, desk, error)
    if update["next"] in BOUNDARIES or update["next"] == "end":
        desk.recorder.flush(step=True)
    spent: State = {
        "seq": desk.recorder.seq,
        "tokens": desk.meter.tokens,
        "clock": desk.meter.clock,
        "looks": desk.meter.looks,
    }
    return update | spent


def _out_of_budget(name: str, state: State, desk: RunContext, error: BudgetExceeded) -> State:
    message = str(error)
    desk.recorder.add(Failed(round=state.get("round", 0), where=name, message=message))
    return {"next": "synthesize", "outcome": plain(LoopOutcome(why=message))}
