"""The machines for LangGraph's own studio and server (``langgraph.json``).

A question goes in as ``{"text": "Who opens the talk?"}``, with ``videos``, ``options`` and
``as_of`` where needed; to the tool loop with its ``strategy``. The server's runs are trajectories
like any other.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from agent.run_context import RunContext
from agent.state import State
from domain.asking import Question, check_options
from domain.errors import InputError
from domain.time import parse_clock
from graphs.ask_result import answer_json
from graphs.machine import MACHINES
from graphs.runner import DONE, Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import find_trajectory
from store.queries.videos import named_or_all
from strategies.registry import all_strategies, find_strategy

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Asking(TypedDict, total=False):
    """What a user of the studio fills in; ``videos`` are ids or titles, ``as_of`` is ``MM:SS``.

    ``strategy``: one of the machine; the default is the first of them.
    """

    text: str
    videos: list[str]
    options: list[str]
    as_of: str
    strategy: str


class Answered(TypedDict, total=False):
    """What comes out: the answer as ``homer ask --json`` prints it."""

    answer: dict[str, Any]


class StudioState(State, Asking, Answered, total=False):
    """The machine's state, with what goes in and comes out."""


class StudioRuns:
    """The runs of a server on one library; unknown ones resume from their record."""

    def __init__(self, store: Store, toolbox: Toolbox) -> None:
        self.store = store
        self.runner = Runner(store, toolbox)
        self._contexts: dict[str, RunContext] = {}
        self._lock = threading.Lock()

    def begin(self, asking: Asking, machine: str) -> State:
        name = asking.get("strategy")
        on_machine = [one.name for one in all_strategies() if one.machine == machine]
        strategy = on_machine[0] if name is None else name
        if find_strategy(strategy).machine != machine:
            names = ", ".join(on_machine)
            raise InputError(f"the strategy {strategy} runs on another machine: use one of {names}")
        state, context = self.runner.begin(question_of(self.store, asking), strategy=strategy)
        with self._lock:
            self._contexts[state["trajectory"]] = context
        return state

    def context_of(self, state: State) -> RunContext:
        """Return the run's context; after a step back in time, as it was then.

        Raises:
            InputError: the question was answered, so its record must not change.
        """
        with self._lock:
            context = self._contexts.get(state["trajectory"])
            if context is None or context.recorder.seq != state["seq"]:
                of = state["trajectory"]
                with self.store.begin() as session:
                    answered = find_trajectory(session, of).state == DONE
                if answered:
                    raise InputError(
                        f"trajectory {of} has its answer: go on from one of its rounds with "
                        f"homer fork {of} --round K"
                    )
                context = self.runner.context_at(state)
                self._contexts[state["trajectory"]] = context
        return context

    def end(self, state: State) -> Answered:
        result = self.runner.finish(self.context_of(state))
        with self._lock:
            self._contexts.pop(result.trajectory_id, None)
        return {"answer": answer_json(result)}


@cache
def runs() -> StudioRuns:
    """Return the runs on the library of ``$HOMER_HOME``, opened by the first question."""
    home = Home.default()
    return StudioRuns(open_store(home), Toolbox(load_profile(None, home.config), home.weights))


def homer() -> CompiledStateGraph[Any, Any]:
    """Build the HOMER machine."""
    return _build("homer")


def tool_loop() -> CompiledStateGraph[Any, Any]:
    """Build the machine of the other strategies."""
    return _build("tool_loop")


def _build(name: str) -> CompiledStateGraph[Any, Any]:
    """Build a machine with a first step that takes the question and a last one that ends it."""
    machine = MACHINES[name]
    graph = StateGraph(StudioState, input_schema=Asking, output_schema=Answered)
    graph.add_node("question", lambda state: runs().begin(state, name), input_schema=Asking)
    machine.add_steps(graph, "end", lambda state: runs().context_of(state))
    graph.add_node("end", lambda state: runs().end(state))
    graph.add_edge(START, "question")
    graph.add_edge("question", machine.start)
    graph.add_edge("end", END)
    return graph.compile()


def question_of(store: Store, asking: Asking) -> Question:
    """Build the question from the form; without videos, about all videos.

    Raises:
        InputError: it has no text, options that cannot be told apart, or there is no video.
        NotFound: there is no such video.
    """
    text, names = asking.get("text", "").strip(), asking.get("videos") or []
    as_of = asking.get("as_of")
    if not text:
        raise InputError("the question is empty: fill in 'text'")
    with store.begin() as session:
        video_ids = named_or_all(session, names)
    if not video_ids:
        raise InputError("nothing has been watched yet: homer ingest FILE")
    options = check_options(asking.get("options") or ())
    moment = parse_clock(as_of) if as_of else None
    return Question(text=text, videos=video_ids, options=options, as_of_ms=moment)
