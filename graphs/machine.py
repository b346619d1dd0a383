"""A machine: which step follows which. LangGraph runs it; the steps are in ``nodes/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent.harness.constrain import check
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, ledger_of, plain
from agent.strategy import Strategy
from domain.asking import Action
from domain.errors import BudgetExceeded, InputError
from domain.ledger import begin_attempt, next_subtask
from domain.trajectory import Failed
from nodes.finish import answer, finish, synthesize
from nodes.plan import plan, progress, replan, route, schedule
from nodes.search_steps import act, assess, bind, bounds_of, force, guard, record, retrieve
from nodes.tool_loop import begin, check_use, close_round, complaint_about, open_round, use_tool

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph


Node = Callable[[State, RunContext], State]
ContextOf = Callable[[State], RunContext]


@dataclass(frozen=True)
class Machine:
    """The steps of a kind of run.

    Args:
        steps: each step with those that may follow it; a step that calls a model may exhaust a
            budget, after which ``synthesize`` follows.
        start: the first step of a question.
        entries: where a run may begin: at the start, or, as a fork, at a round.
        round_step: the central step of a round, where a fork may start.
        boundaries: steps that call a model or a tool; before each, everything so far is on disk.
        steps_a_round: the most steps of a round without retries.
        complaint: says why a fork that begins from a state cannot take an action; "" if it can.
    """

    steps: Mapping[str, tuple[Node, tuple[str, ...]]]
    start: str
    entries: tuple[str, ...]
    round_step: str
    boundaries: frozenset[str]
    steps_a_round: int
    complaint: Callable[[Action, State, RunContext], str]

    def recursion_limit(self, rounds: int, retries: int) -> int:
        """Return the most steps of a run: those of its rounds, two more a retry, and the ends."""
        return rounds * (self.steps_a_round + 2 * (retries + 1)) + 10

    def run(self, state: State, context: RunContext) -> Any:
        """Take the steps from ``state`` to the end; return the last state."""
        limit = self.recursion_limit(context.settings.rounds, context.settings.retries)
        return self.graph.invoke(state, {"recursion_limit": limit}, context=context)

    @cached_property
    def graph(self) -> CompiledStateGraph[Any, Any]:
        """The compiled machine; its context is a ``RunContext``."""
        # LangGraph is slow to import; views of a trajectory need only the names of the steps.
        from langgraph.graph import END, START, StateGraph

        graph = StateGraph(State, context_schema=RunContext)
        self.add_steps(graph, END)
        graph.add_conditional_edges(START, first, {name: name for name in self.entries})
        return graph.compile()

    def add_steps(
        self, graph: StateGraph[Any, Any, Any, Any], end: str, context_of: ContextOf | None = None
    ) -> None:
        """Add the machine's steps to a graph; ``end`` follows the last.

        ``context_of`` finds the run's context by its state, if that is not the graph's context.
        """
        for name, (_, following) in self.steps.items():
            destinations = tuple(
                end if destination == "end" else destination for destination in following
            )
            graph.add_node(name, self._step(name, end, context_of), destinations=destinations)

    def _step(self, name: str, end: str, context_of: ContextOf | None) -> Any:
        """Wrap a node for LangGraph; if it fails, the runner flushes the recorder."""
        # Slow to import, as in ``build``.
        from langgraph.runtime import Runtime
        from langgraph.types import Command

        def run(state: State, runtime: Runtime[RunContext]) -> Command[str]:
            update = self.take(name, state, context_of(state) if context_of else runtime.context)
            following = update["next"]
            return Command(update=update, goto=end if following == "end" else following)

        run.__annotations__ = {
            "state": State,
            "runtime": Runtime[RunContext],
            "return": Command[str],
        }
        return run

    def take(self, name: str, state: State, context: RunContext) -> State:
        """Take one step: update the state, and write its events before a boundary."""
        context.recorder.step = name
        with context.rounds.during(name, state.get("round", 0)):
            node, _ = self.steps[name]
            if name in self.boundaries:
                context.recorder.boundary = state
                context.recorder.replay_source.halt(state)
            try:
                update = node(state, context)
            except BudgetExceeded as error:
                message = str(error)
                context.recorder.add(
                    Failed(round=state.get("round", 0), where=name, message=message)
                )
                update = {"next": "synthesize", "outcome": plain(LoopOutcome(why=message))}
            if update["next"] in self.boundaries or update["next"] == "end":
                context.recorder.flush()
            counters: State = {
                "seq": context.recorder.seq,
                "tokens": context.budget.tokens,
                "clock": context.budget.clock,
                "looks": context.budget.looks,
            }
            return update | counters


def first(state: State) -> str:
    return state["next"]


# The HOMER machine: plan, then rounds of scheduling, acting, retrieving and assessing.


def complaint(action: Action, start: State, context: RunContext) -> str:
    """Return why a fork that begins from ``start`` cannot take this action; "" if it can."""
    ledger = ledger_of(start)
    # A fork whose plan was changed acts after scheduling.
    task = next_subtask(ledger, context.settings) if start["next"] == "schedule" else None
    if task is not None:
        opened = plain(begin_attempt(ledger, task.id))
        start = {**start, "ledger": opened, "current": task.id, "round": start["round"] + 1}
    return check(action, bounds_of(start, context), context.settings).complaint


HOMER = Machine(
    steps={
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
    },
    start="route",
    entries=("route", "plan", "schedule", "act"),
    round_step="act",  # The round's subtask is chosen by then.
    boundaries=frozenset({"plan", "replan", "act", "retrieve", "assess", "synthesize", "finish"}),
    steps_a_round=9,
    complaint=complaint,
)


# The tool loop: in each round a strategy's policy uses one tool or answers.

TOOL_LOOP = Machine(
    steps={
        "begin": (begin, ("schedule",)),
        "schedule": (open_round, ("act", "synthesize")),
        "act": (act, ("guard", "synthesize")),
        "guard": (check_use, ("act", "retrieve", "synthesize")),
        "retrieve": (use_tool, ("record",)),
        "record": (close_round, ("schedule",)),
        "synthesize": (synthesize, ("finish",)),
        "finish": (finish, ("end",)),
    },
    start="begin",
    entries=("begin", "schedule", "act"),
    round_step="act",
    boundaries=frozenset({"act", "retrieve", "synthesize", "finish"}),
    steps_a_round=5,
    complaint=lambda action, _, context: complaint_about(action, context),
)


# The machines by name, as strategies name the one that they run on.

MACHINES = {"homer": HOMER, "tool_loop": TOOL_LOOP}


def machine_of(strategy: Strategy) -> Machine:
    """Return the machine that a strategy runs on.

    Raises:
        InputError: there is no such machine.
    """
    machine = MACHINES.get(strategy.machine)
    if machine is None:
        known = ", ".join(MACHINES)
        raise InputError(f"the strategy {strategy.name} runs on {strategy.machine!r}: use {known}")
    return machine
