"""Habits of weak models: other spellings, other types, plain lines in the place of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.reasoners.replies import (
    ActReply,
    AssessReply,
    ConcludeReply,
    PlanReply,
    ReplanReply,
    read_lines,
)
from domain.asking import Action, Mode
from domain.errors import ModelError
from models.chat import read_value

LINES = """Reason: the gate is at the start
Action: {action}
Content: {content}"""


def acted(text: str) -> Action:
    return read_value(text, ActReply).decision()


def in_lines(action: str, content: str) -> Action:
    return acted(LINES.format(action=action, content=content))


@pytest.mark.parametrize(
    ("action", "content", "mode", "query"),
    [
        ("Search", "event: Ann opens the gate", Mode.EVENT, "Ann opens the gate"),
        ("search", "VIDEO - Ann opens the gate", Mode.VIDEO, "Ann opens the gate"),
        ("[Search]", "[KEYFRAME] a red door", Mode.KEYFRAME, "a red door"),
        ("Search.", 'neighbour: "rain and retreat"', Mode.NEIGHBOR, "rain and retreat"),
        ("**Search**", "keyframe mode: a red door", Mode.KEYFRAME, "a red door"),
        ("Search the memory", "Ann opens the gate", None, "Ann opens the gate"),
        ("Search", "events of the morning", Mode.EVENT, "of the morning"),
    ],
)
def test_three_lines_are_a_search(action: str, content: str, mode: Mode | None, query: str) -> None:
    made = in_lines(action, content)
    assert (made.kind, made.mode, made.query) == ("search", mode, query)
    assert made.reason == "the gate is at the start"


@pytest.mark.parametrize(
    ("content", "answer", "refs", "missing"),
    [
        ("B [m12]", "B", ("m12",), False),
        ("Ann opens it. [m12] [s3]", "Ann opens it.", ("m12", "s3"), False),
        ("Ann, at [03:12] (m1, M2)", "Ann, at [03:12]", ("m1", "m2"), False),
        ("not in memory", "not in memory", (), True),
        ("It is in memory", "It is in memory", (), False),
    ],
)
def test_an_answer_in_three_lines_is_an_action(
    content: str, answer: str, refs: tuple[str, ...], missing: bool
) -> None:
    made = in_lines("Answer", content)
    assert (made.kind, made.answer, made.citations) == ("answer", answer, refs)
    assert made.not_in_memory is missing


@pytest.mark.parametrize(
    "text",
    [
        "Sure!\n\n**Reason:** because\n**Action:** Search\n**Content:** event: a red\ndoor\n",
        "1. Reason: because\n2. Action: Search\n3. Content: event: a red door",
        "<think>Action: Answer\nContent: C</think>\nAction: Search\nContent: event: a red door",
        "> action: search event: a red door",
        "Reason: {see above}\nAction: Search\nContent: event: a red door",
        '{"action": "Search", "mode": "EVENT", "query": "a red door"}',
        '{"action": "event", "mode": null, "query": "a red door"}',
        '{"action": "search", "mode": "event mode", "query": "a red door", "citations": null}',
    ],
)
def test_the_same_action_is_read_in_any_dress(text: str) -> None:
    made = acted(text)
    assert (made.kind, made.mode, made.query) == ("search", Mode.EVENT, "a red door")


@pytest.mark.parametrize(
    "text",
    ["", "I would search.", "Action: dance\nContent: event: now", "Reason: so\nContent: event: x"],
)
def test_lines_without_an_action_are_refused_with_a_reason(text: str) -> None:
    assert read_lines(text) is None
    with pytest.raises(ModelError, match="cannot be read"):
        acted(text)


@given(st.text(max_size=200), st.text(max_size=60))
def test_reading_lines_never_fails(noise: str, content: str) -> None:
    read_lines(noise)
    fields = read_lines(LINES.format(action="Search", content=content))
    assert fields is None or ActReply.model_validate(fields).decision().kind == "search"


def test_one_thing_where_a_list_was_wanted_is_a_list_of_one() -> None:
    plan = read_value('{"subtasks": ["who came", {"text": "why", "depends": 1}]}', PlanReply)
    assert [s.draft().text for s in plan.subtasks] == ["who came", "why"]
    assert plan.subtasks[1].draft().depends == ("t1",)
    assert acted('{"action": "answer", "answer": "C", "citations": "m1, m2"}').citations == (
        "m1",
        "m2",
    )
    text = '{"resolved": [{"subtask": 1, "answer": "x", "evidence": "[m4]"}], "reopened": "T2"}'
    made = read_value(text, AssessReply).assessment()
    assert (made.resolved[0].subtask, made.resolved[0].refs) == ("t1", ("m4",))
    assert made.reopened == ("t2",)
    text = '{"rewrite": [{"id": "subtask 2", "text": "y"}], "add": ["z"], "abandon": ["t3 "]}'
    edits = read_value(text, ReplanReply).edits()
    assert (edits.rewrite[0].id, edits.add[0].text, edits.abandon) == ("t2", "z", ("t3",))
    text = '{"option": null, "answer": null, "citations": [7], "not_in_memory": null}'
    said = read_value(text, ConcludeReply).conclusion()
    assert (said.text, said.option, said.not_in_memory) == ("", None, False)


def test_the_form_that_models_are_held_to_is_strict() -> None:
    form = ActReply.model_json_schema()["properties"]
    assert form["citations"]["items"] == {"type": "string"}
    assert form["action"]["enum"] == ["search", "answer"]
    assert PlanReply.model_json_schema()["properties"]["subtasks"]["items"] == {
        "$ref": "#/$defs/SubtaskReply"
    }
