"""The modes as tools for other agents, and the limits of tools' arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agent.strategy import LONGEST_OPTION, PolicyParts, SearchEach
from domain.asking import Action, Evidence, Mode
from domain.errors import InputError
from domain.memories import MemoryView, Scope, Segment
from domain.time import TimeSpan
from retrieval.adapters import ABOUT, as_langchain_tools, as_text
from retrieval.result import Retrieval, UnknownLabel
from strategies.named_tools import find_tool

VIEW = MemoryView(scopes=(Scope(video="v", last_clip=3),))


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


EMPTY = Retrieval(mode=Mode.EVENT, query="q")


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


TOOLS = [
    ("nearest", "plain-rag"),
    ("episodic", "worldmm"),
    ("semantic", "worldmm"),
    ("search", "vam"),
    ("search_memory", "eventmem"),
]


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
