"""The memory and the machine in other hands: LangChain, llama-index, LangGraph's server."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.asking import Mode, Question
from domain.errors import InputError, NotFound
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.settings import Settings
from graphs import studio
from graphs.ask_result import answer_json
from graphs.machine import MACHINES
from graphs.replay import replay
from retrieval.adapters import as_langchain_tools, as_llama_index
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import memory_view
from store.queries.trajectories import find_trajectory, list_trajectories
from tests.support.asking import PARTY, WordToolbox
from tests.support.runs import ask

ROOT = Path(__file__).parents[2]
QUERY = "Bob plays a slow song on the piano"


@pytest.fixture
def retrievers(party: Store) -> Retrievers:
    return Retrievers(party, WordToolbox(), Settings())


@pytest.fixture
def view(party: Store) -> MemoryView:
    with party.begin() as session:
        return memory_view(session, (PARTY,))


def call(tool: Any, **arguments: Any) -> Any:
    """Call a tool as an agent does: the message that goes back to the model."""
    return tool.invoke({"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"})


def test_an_agent_finds_an_event_looks_closer_and_moves_on(
    retrievers: Retrievers, view: MemoryView
) -> None:
    tools = {tool.name: tool for tool in as_langchain_tools(retrievers, view)}
    event = call(tools["search_event"], query=QUERY)
    assert isinstance(event.artifact, Retrieval)
    assert event.artifact.focus is not None
    focus = f"s{event.artifact.focus.id}"
    assert f"[{focus}]" in event.content
    assert "near: rain and retreat" in event.content
    closer = call(tools["search_video"], query=QUERY, focus=focus)
    assert "Bob plays a slow song on the piano" in closer.content
    assert all(f"[{e.ref}]" in closer.content for e in closer.artifact.evidence)
    moved = call(tools["search_neighbor"], query="rain and retreat", focus=f"[{focus}]")
    assert moved.artifact.focus.label == "rain and retreat"
    assert call(tools["search_keyframe"], query=QUERY, focus=focus).content


@pytest.mark.parametrize("mode", list(Mode))
def test_each_mode_is_llama_retriever(retrievers: Retrievers, view: MemoryView, mode: Mode) -> None:
    focus = retrievers.search(view, Mode.EVENT, QUERY).focus
    assert focus is not None
    query = "rain and retreat" if mode is Mode.NEIGHBOR else QUERY
    found = retrievers.search(view, mode, query, focus.id)
    nodes = as_llama_index(retrievers, view, mode, focus.id).retrieve(query)
    assert [n.node.node_id for n in nodes] == [e.ref for e in found.evidence]


def factory(graph: str = "homer") -> Any:
    """What ``langgraph.json`` names, loaded as LangGraph's server loads it."""
    named = json.loads((ROOT / "langgraph.json").read_text())["graphs"][graph]
    path, _, name = named.partition(":")
    spec = importlib.util.spec_from_file_location("served", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["served"] = module
    spec.loader.exec_module(module)
    return module, getattr(module, name)


@pytest.fixture
def served(party: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The graph of ``langgraph.json``, on the party's library."""
    monkeypatch.setenv("HOMER_DATABASE_URL", party.url)
    module, make = factory()
    monkeypatch.setattr(module, "Toolbox", lambda _profile, _weights: WordToolbox())
    yield make()
    opened = module.runs()
    opened.runner.close()
    opened.store.close()


@pytest.mark.parametrize("name", MACHINES)
def test_the_studio_shows_the_machines_own_steps_without_opening_anything(name: str) -> None:
    _, make = factory(name)
    graph = make()
    nodes = set(graph.get_graph().nodes)
    assert set(MACHINES[name].steps) | {"question", "end"} <= nodes
    fields = {"text", "videos", "options", "as_of", "strategy"}
    assert set(graph.get_input_jsonschema()["properties"]) == fields
    assert set(graph.get_output_jsonschema()["properties"]) == {"answer"}


def test_a_question_in_the_studio_is_a_trajectory_like_any_other(party: Store, served: Any) -> None:
    question = {"text": "Who opens the gate?", "options": ["Bob", "Ann"]}
    said = served.invoke(question, {"recursion_limit": 200})["answer"]
    asked = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann"))
    same = answer_json(ask(party, WordToolbox(), asked))
    for field in ("answer", "option", "confidence", "citations", "rounds"):
        assert said[field] == same[field]
    with party.begin() as session:
        row = find_trajectory(session, said["trajectory"])
    assert (row.state, row.answer is not None) == ("done", True)
    assert replay(party, row.id).whole


@pytest.fixture
def word_studio(party: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The studio on the party's library, without weights."""
    monkeypatch.setenv("HOMER_DATABASE_URL", party.url)
    monkeypatch.setattr(studio, "Toolbox", lambda _profile, _weights: WordToolbox())
    studio.runs.cache_clear()
    yield
    studio.runs.cache_clear()


@pytest.mark.usefixtures("word_studio")
def test_the_studio_runs_the_strategy_that_is_named_on_its_machine(party: Store) -> None:
    question = {"text": "Who opens the gate?", "strategy": "plain-rag"}
    said = studio.tool_loop().invoke(question, {"recursion_limit": 200})["answer"]
    with party.begin() as session:
        assert find_trajectory(session, said["trajectory"]).machine == "plain-rag"
    with pytest.raises(InputError, match=r"homer runs on another machine: use one of .*plain-rag"):
        studio.tool_loop().invoke({"text": "Who?", "strategy": "homer"})


@pytest.mark.usefixtures("word_studio")
def test_the_server_that_was_restarted_goes_on_with_its_thread(party: Store) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    graph = studio.homer().builder.compile(
        checkpointer=InMemorySaver(), interrupt_before=["assess"]
    )
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 200}
    graph.invoke({"text": "What does Bob play?", "videos": [PARTY]}, config)
    with party.begin() as session:
        assert list_trajectories(session)[0].state == "running"
    studio.runs.cache_clear()
    said: Any = {}
    for _ in range(12):
        said = graph.invoke(None, config)
        if "answer" in said:
            break
    asked = Question(text="What does Bob play?", videos=(PARTY,))
    assert said["answer"]["answer"] == ask(party, WordToolbox(), asked).answer.text
    assert replay(party, said["answer"]["trajectory"]).whole
    first = [at for at in graph.get_state_history(config) if at.next == ("assess",)][-1]
    with pytest.raises(InputError, match="homer fork"):
        graph.invoke(None, first.config)


@pytest.mark.parametrize(
    ("asking", "error"),
    [({"text": "  "}, InputError), ({"text": "Who?", "videos": ["no such video"]}, NotFound)],
)
def test_a_question_that_is_none_leaves_nothing(
    party: Store, served: Any, asking: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        served.invoke(asking)
    with party.begin() as session:
        assert list_trajectories(session) == []
