"""The machine as LangGraph's own studio and server open it (``langgraph.json``).

A question goes in as ``{"text": "Who opens the talk?"}``, with ``videos``, ``options`` and
``as_of`` where they are needed. What the server runs is a trajectory like any other.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from agent.run_context import RunContext
from agent.state import State
from domain.asking import Question, told_apart
from domain.errors import InputError
from domain.time import parse_clock
from graphs.homer import add_steps
from graphs.runner import DONE, Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import find_trajectory
from store.queries.videos import named_or_only

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


class Asking(TypedDict, total=False):
    """What a user of the studio fills in; ``videos`` are ids or titles, ``as_of`` is ``MM:SS``."""

    text: str
    videos: list[str]
    options: list[str]
    as_of: str


class Answered(TypedDict, total=False):
    """What comes out: the answer as ``homer ask --json`` prints it."""

    answer: dict[str, Any]


class StudioState(State, Asking, Answered, total=False):
    """The machine's state, with what goes in and comes out."""


class StudioRuns:
    """The runs of a server on one library. A run that it does not know goes on from its record."""

    def __init__(self, store: Store, toolbox: Toolbox) -> None:
        self.store = store
        self.asker = Runner(store, toolbox)
        self._desks: dict[str, RunContext] = {}
        self._lock = threading.Lock()

    def begin(self, asking: Asking) -> State:
        """Put a question on record."""
        state, desk = self.asker.begin(question_of(self.store, asking))
        with self._lock:
            self._desks[state["trajectory"]] = desk
        return state

    def desk_of(self, state: State) -> RunContext:
        """What the run works with; after a step back in time, as it was then.

        Raises:
            InputError: the question was answered: what is on record of it stays as it is.
        """
        with self._lock:
            desk = self._desks.get(state["trajectory"])
            if desk is None or desk.recorder.seq != state["seq"]:
                self._refuse_answered(state["trajectory"])
                desk = self.asker.desk_at(state)
                self._desks[state["trajectory"]] = desk
        return desk

    def _refuse_answered(self, trajectory: str) -> None:
        with self.store.begin() as session:
            answered = find_trajectory(session, trajectory).state == DONE
        if answered:
            raise InputError(
                f"trajectory {trajectory} has its answer: go on from one of its rounds with "
                f"homer fork {trajectory} --round K"
            )

    def end(self, state: State) -> Answered:
        """Close the trajectory."""
        from graphs.ask import answer_json

        asked = self.asker.finish(self.desk_of(state))
        with self._lock:
            self._desks.pop(asked.trajectory_id, None)
        return {"answer": answer_json(asked)}


@cache
def runs() -> StudioRuns:
    """The runs on the library of ``$HOMER_HOME``, opened by the first question."""
    home = Home.default()
    return StudioRuns(open_store(home), Toolbox(load_profile(None, home.config), home.weights))


def homer() -> CompiledStateGraph[Any, Any]:
    """The machine, with a first step that takes the question and a last one that ends it."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(StudioState, input_schema=Asking, output_schema=Answered)
    graph.add_node("question", lambda state: runs().begin(state), input_schema=Asking)
    add_steps(graph, "end", lambda state: runs().desk_of(state))
    graph.add_node("end", lambda state: runs().end(state))
    graph.add_edge(START, "question")
    graph.add_edge("question", "route")
    graph.add_edge("end", END)
    return graph.compile()


def question_of(store: Store, asking: Asking) -> Question:
    """The question that was filled in; without videos it is about the only one there is.

    Raises:
        InputError: it has no text, options that cannot be told apart, or no clear video.
        NotFound: there is no such video.
    """
    text, names = asking.get("text", "").strip(), asking.get("videos") or []
    as_of = asking.get("as_of")
    if not text:
        raise InputError("the question is empty: fill in 'text'")
    with store.begin() as session:
        found = named_or_only(session, names)
    if not found:
        raise InputError("say in 'videos' which video the question is about")
    options = told_apart(asking.get("options") or ())
    moment = parse_clock(as_of) if as_of else None
    return Question(text=text, videos=found, options=options, as_of_ms=moment)
