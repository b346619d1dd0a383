"""The registry of acts, and the modes as tools for other agents."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from fastapi.routing import APIRoute

from agent.strategy import LONGEST_OPTION, PolicyParts, SearchEach
from api.access import AccessRules
from api.server import make_app
from cli import commands
from cli.main import COMMANDS
from cli.render import SHOWN, TABLES
from domain.asking import Action, Evidence, Mode
from domain.errors import InputError
from domain.memories import MemoryView, Scope, Segment
from domain.moments import Retrieval, UnknownLabel
from domain.time import TimeSpan
from library.params import Page
from library.registry import ACTS, GUIDES, Act
from retrieval.adapters import ABOUT, as_langchain_tools, as_text
from strategies.named_tools import find_tool
from tests.support.api import WordState

VIEW = MemoryView(scopes=(Scope(video="v", last_clip=3),))
EMPTY = Retrieval(mode=Mode.EVENT, query="q")
TOOLS = [
    ("nearest", "plain-rag"),
    ("episodic", "worldmm"),
    ("semantic", "worldmm"),
    ("search", "vam"),
    ("search_memory", "eventmem"),
]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.place)
def test_an_act_says_what_it_does_and_what_it_asks_for(act: Act) -> None:
    assert act.help.partition("\n")[0].endswith(".")
    assert "Args:" not in act.help
    assert next(iter(inspect.signature(act.function).parameters)) in ("workspace", "store", "home")
    for name, field in act.arguments.model_fields.items():
        assert field.description, name
    if act.command:
        known = COMMANDS | {f"eval {name}": one for name, one in commands.EVALUATIONS.items()}
        name = act.command if act.command in known else act.command.partition(" ")[0]
        assert known[name][0] == "door"
        assert f"homer {act.command}" in act.help, "an example"
        assert (act.help if name == act.command else GUIDES[name]).startswith(known[name][1])


@pytest.mark.parametrize("act", [act for act in ACTS if act.command], ids=lambda act: act.place)
def test_what_an_act_returns_can_be_shown_in_a_terminal(act: Act) -> None:
    kinds = shown_kinds(act.hints["return"])
    assert kinds <= {*TABLES, *SHOWN}, kinds


def shown_kinds(result: Any) -> set[str]:
    """The names of the types whose rows are shown of a result."""
    if get_origin(result) is Iterator:
        return {"str"}
    if get_origin(result) in (list, Union, UnionType):
        return set().union(*map(shown_kinds, get_args(result)))
    if isinstance(result, type) and issubclass(result, Page):
        return set().union(*map(shown_kinds, result.__pydantic_generic_metadata__["args"]))
    return {get_origin(result).__name__ if get_origin(result) is dict else result.__name__}


def test_no_two_acts_share_a_name_at_a_door() -> None:
    for names in (
        [act.place.partition(".")[2] for act in ACTS],
        [act.command for act in ACTS if act.command],
        [act.route for act in ACTS if act.route],
        [act.tool for act in ACTS if act.tool],
    ):
        assert len(names) == len(set(names))


def test_what_names_a_thing_of_this_machine_is_not_asked_for_over_http() -> None:
    app = make_app(WordState(None, "local"), AccessRules())  # type: ignore[arg-type]
    schema = app.openapi()
    assert any(isinstance(route, APIRoute) and route.path == "/alerts" for route in app.routes)
    for act in ACTS:
        local = act.parameters.keys() - act.remote.keys()
        if act.route:
            method, path = act.route.lower().split(" ")
            body = schema["components"]["schemas"].get(f"{act.function.__name__}_body")
            asked = str([schema["paths"][path][method], body])
            assert not [name for name in local if f"'{name}'" in asked], act.place
        assert local.isdisjoint(act.remote_arguments.model_fields)
    search = next(act for act in ACTS if act.tool == "search")
    with pytest.raises(InputError, match="like_file"):
        search.call(None, {"like_file": "/etc/passwd"}, remote=True)


@pytest.mark.parametrize(
    "given", [{}, {"name": "x" * 41}, {"name": "a", "threshold": 2}, {"name": "a", "what": 1}]
)
def test_what_an_act_does_not_take_is_refused_before_it_is_done(given: dict[str, Any]) -> None:
    act = next(act for act in ACTS if act.command == "alert add")
    with pytest.raises(InputError):
        act.call(None, given)


def segment(number: int, label: str = "rain") -> Segment:
    span = TimeSpan.of(0, 60_000)
    return Segment(id=number, video="v", number=0, label=label, summary="s", clips=(0,), span=span)


def line(ref: str, text: str = "Ann waves") -> Evidence:
    return Evidence(ref=ref, video="v", span=TimeSpan.of(3_000, 5_000), text=text, score=0.5)


class Searched:
    """Keeps what was searched for, and gives ``found`` or raises it."""

    def __init__(self, found: Retrieval | Exception) -> None:
        self.found = found
        self.asked: list[tuple[Any, ...]] = []

    def search(self, *asked: Any) -> Retrieval:
        self.asked.append(asked)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def tools(found: Retrieval | Exception) -> tuple[dict[str, Any], Searched]:
    searched: Any = Searched(found)
    return {tool.name: tool for tool in as_langchain_tools(searched, VIEW)}, searched


def test_there_is_a_tool_a_mode_that_says_what_it_is_for() -> None:
    made, _ = tools(EMPTY)
    assert set(made) == {f"search_{mode}" for mode in Mode}
    for mode in Mode:
        assert made[f"search_{mode}"].description == ABOUT[mode]
        assert set(made[f"search_{mode}"].args) == {"query", "focus"}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("focus", "number"), [(None, None), ("", None), ("s12", 12), ("[s12]", 12), (" s7 ", 7)]
)
def test_tool_searches_view_in_its_mode(mode: Mode, focus: str | None, number: int | None) -> None:
    made, searched = tools(EMPTY)
    made[f"search_{mode}"].invoke({"query": "who?", "focus": focus})
    assert searched.asked == [(VIEW, mode, "who?", number)]


@pytest.mark.parametrize("focus", ["12", "m12", "s0", "s", "s-1", "s1 s2", "rain", "s" + "9" * 30])
def test_what_is_no_segment_is_said_to_the_model_and_not_searched(focus: str) -> None:
    made, searched = tools(EMPTY)
    output = made["search_video"].invoke({"query": "who?", "focus": focus})
    assert "is no segment: a focus is given as s12" in output
    assert searched.asked == []


@pytest.mark.parametrize(
    ("error", "output"),
    [
        (UnknownLabel("sun", ("rain", "music")), "Neighbours: rain; music"),
        (UnknownLabel("sun", ()), "none: this segment has no edges yet"),
        (InputError("search EVENT first"), "search EVENT first"),
    ],
)
def test_what_cannot_be_searched_is_said_to_try_again(error: Exception, output: str) -> None:
    made, _ = tools(error)
    assert output in made["search_neighbor"].invoke({"query": "sun", "focus": "s3"})


def test_a_fault_of_ours_is_not_passed_off_as_an_answer() -> None:
    made, _ = tools(RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        made["search_event"].invoke({"query": "q"})


def test_a_retrieval_is_its_segment_its_lines_and_where_to_move_on() -> None:
    found = EMPTY.model_copy(
        update={
            "focus": segment(3),
            "evidence": (line("m12"), line("k7", "in view: Ann")),
            "neighbours": (segment(4, "music"),),
            "nothing_close": True,
        }
    )
    assert as_text(found).split("\n") == [
        "Nothing close was found; what was nearest:",
        "[s3] 00:00-01:00 rain",
        "[m12] 00:03-00:05 Ann waves",
        "[k7] 00:03-00:05 in view: Ann",
        "near: music [s4]",
    ]
    assert as_text(EMPTY) == "Nothing was found."


@pytest.mark.parametrize(("tool", "strategy"), TOOLS)
@pytest.mark.parametrize(
    ("options", "where"),
    [(["a"] * 27, "options: .*at most 26"), (["a", "b" * (LONGEST_OPTION + 1)], "options.1: ")],
)
def test_limits_of_options_hold(tool: str, strategy: str, options: list[str], where: str) -> None:
    named = find_tool(tool, strategy).tool
    action = Action(kind="search", query="who sings", arguments={"options": options})
    with pytest.raises(InputError, match=f"{tool}: {where}"):
        named.parse(action)


def test_a_question_with_a_long_option_is_searched_with_its_beginning() -> None:
    parts: Any = {"responder": SimpleNamespace(name="local", note=""), "calls": None}
    policy = SearchEach(
        PolicyParts(**parts, budget=None, settings=None, load_image=lambda _: b""),  # type: ignore[arg-type]
        {"nearest": "first"},
        "done",
    )
    question = SimpleNamespace(text="who sings", options=("Ann", "b" * 9_000))
    decision: Any = SimpleNamespace(question=question, searches=())
    action = policy.act(decision)
    find_tool("nearest", "plain-rag").tool.parse(action)
    assert action.arguments["options"] == ["Ann", "b" * LONGEST_OPTION]
