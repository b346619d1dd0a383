"""The arguments of tools: what is beyond their limits is refused with the reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agent.strategy import LONGEST_OPTION, PolicyParts, SearchEach
from domain.asking import Action
from domain.errors import InputError
from strategies.named_tools import find_tool

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
def test_too_many_options_and_too_long_ones_are_refused(
    tool: str, strategy: str, options: list[str], where: str
) -> None:
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
