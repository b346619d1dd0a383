"""Habits of weak models: other spellings, other types, broken JSON, lines in its place."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.reasoners import replies
from agent.reasoners.port import Assessment, CompletedRound, DecisionContext
from agent.reasoners.replies import (
    LONGEST,
    ActReply,
    AssessReply,
    ConcludeReply,
    PlanReply,
    ReplanReply,
    act_form,
    assess_form,
    conclude_form,
    read_lines,
    refs_in,
    with_short_texts,
)
from agent.state import Focus
from domain.asking import Action, Ledger, Mode, Question
from domain.errors import ModelError
from domain.ledger import SubtaskDraft, begin_attempt, bind_evidence, new_ledger
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from models.chat import read_value
from models.structured import read_object
from tests.support.machine import VIDEO, evidence, search

LINES = """Reason: the gate is at the start
Action: {action}
Content: {content}"""
FOCUS = Focus(id=1, video=VIDEO, label="arrival")
STEP = CompletedRound(round=1, subtask="t1", action=search("a door opens"), lines=())
prompt = replies.prompt


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
        '{"reason": "so", "action": "search", "mode": "event", "query": " a red door "}',
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
    found = acted('{"action": "answer", "answer": "C", "citations": "m1, m2"}').citations
    assert found == ("m1", "m2")
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


def ledger() -> Ledger:
    made, _ = new_ledger([SubtaskDraft(text="what"), SubtaskDraft(text="why")], "q", AskSettings())
    return bind_evidence(begin_attempt(made, "t1"), "t1", ["m1", "s3"], 0.5)


def turn(options: tuple[str, ...] = (), **more: Any) -> DecisionContext:
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    question = Question(text="What?", videos=(VIDEO,), options=options)
    return DecisionContext(question=question, view=view, ledger=ledger(), **more)


def field(form: type[Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = form.model_json_schema()["properties"][name]
    return found


def test_before_any_search_there_is_no_answer_and_no_move() -> None:
    first = act_form(turn(), narrow=False)
    assert field(first, "action")["enum"] == ["search"]
    assert "answer" not in first.model_json_schema()["properties"]
    assert field(first, "mode")["enum"] == ["event", "keyframe", "video"]
    later = act_form(turn(steps=(STEP,), focus=FOCUS), narrow=False)
    assert field(later, "action")["enum"] == ["search", "answer"]
    assert "neighbor" in field(later, "mode")["enum"]


@pytest.mark.parametrize("count", [2, 5, 26])
def test_an_answer_is_one_of_the_options_however_many(count: int) -> None:
    asked = turn(tuple(f"thing {i}" for i in range(count)), steps=(STEP,))
    last = chr(ord("A") + count - 1)
    answers = field(act_form(asked, narrow=False), "answer")["enum"]
    assert (answers[0], answers[-1], len(answers)) == ("", last, count + 1)
    conclusion = conclude_form(asked, narrow=False)
    assert field(conclusion, "option")["enum"][-1] == last
    assert field(conclusion, "not_in_memory")["enum"] == [False]
    assert "enum" not in field(conclude_form(turn(), narrow=False), "option")


def test_a_model_in_this_process_may_cite_only_what_there_is_and_must_be_brief() -> None:
    asked = turn(steps=(STEP,), evidence=(evidence(1), evidence(4)))
    asked = asked.model_copy(
        update={"found": EvidenceRetrieved(mode=Mode.VIDEO, query="q", evidence=(evidence(4),))}
    )
    act = field(act_form(asked, narrow=True), "citations")
    assert (act["items"]["enum"], act["maxItems"]) == (["m1", "s3"], 2)
    assert field(conclude_form(asked, narrow=True), "citations")["items"]["enum"] == ["m1", "m4"]
    claim = assess_form(asked, narrow=True).model_json_schema()["$defs"]["ResolutionReply"]
    assert claim["properties"]["evidence"]["items"]["enum"] == ["m4"]
    assert claim["properties"]["subtask"]["enum"] == ["t1", "t2"]
    assert claim["properties"]["answer"]["maxLength"] == LONGEST
    plan = with_short_texts(PlanReply, narrow=True).model_json_schema()
    assert plan["$defs"]["SubtaskReply"]["properties"]["text"]["maxLength"] == LONGEST
    nothing = act_form(turn(steps=(STEP,)).model_copy(update={"ledger": Ledger()}), narrow=True)
    assert "maxLength" in field(nothing, "answer")
    assert field(nothing, "citations")["maxItems"] == 0


def test_what_comes_back_is_read_as_ever_whatever_was_told() -> None:
    form = act_form(turn(("a", "b")), narrow=True)
    said = form.model_validate({"action": "Answer", "answer": "maybe", "citations": "m77"})
    assert isinstance(said, ActReply)
    assert said.decision() == Action(kind="answer", answer="maybe", citations=("m77",))
    assert form.__name__ == "ActReply"
    assert isinstance(conclude_form(turn(), True).model_validate({}), ConcludeReply)


@pytest.mark.parametrize(
    ("said", "refs"),
    [
        (["[m12]"], ("m12",)),
        (["m12, [s3] and k7"], ("m12", "s3", "k7")),
        (["m1", "m1", " m2 "], ("m1", "m2")),
        (["memory 12"], ("memory 12",)),
        (["", " "], ()),
        ([], ()),
    ],
)
def test_any_spelling_of_citations_is_read(said: list[str], refs: tuple[str, ...]) -> None:
    assert refs_in(said) == refs


def test_an_assessment_and_a_repair_lose_their_spaces() -> None:
    text = '{"resolved": [{"subtask": " t1 ", "answer": "x", "evidence": ["[m4]"]}]}'
    claim = read_value(text, AssessReply).assessment().resolved[0]
    assert (claim.subtask, claim.refs) == ("t1", ("m4",))
    assert read_value("{}", AssessReply).assessment() == Assessment()
    text = '{"rewrite": [{"id": " t2", "text": "y"}], "abandon": ["t3 "]}'
    edits = read_value(text, ReplanReply).edits()
    assert (edits.rewrite[0].id, edits.abandon, edits.add) == ("t2", ("t3",), ())


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)
plain = st.text(alphabet="abcdefgh xyz0123456789.-", max_size=12)
plain_objects = st.dictionaries(
    st.text(alphabet="abcdefgh_", min_size=1, max_size=6),
    st.recursive(
        st.booleans() | st.none() | st.integers() | plain,
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects)
def test_what_is_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value)) == value


@example({"</think>": {}}, "```json\n{}\n```")
@given(objects, st.sampled_from(["```json\n{}\n```", "Here you are:\n{}\nAnything else?", "{}```"]))
def test_prose_and_fences_around_it_do_not_matter(value: dict[str, Any], around: str) -> None:
    assert read_object(around.replace("{}", json.dumps(value))) == value


@given(plain_objects)
def test_pythons_own_spelling_is_read(value: dict[str, Any]) -> None:
    assert read_object(repr(value)) == value


@given(plain_objects)
def test_trailing_commas_are_stepped_over(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value).replace("}", ",}").replace("]", ", ]")) == value


@given(plain_objects, st.data())
def test_what_was_cut_off_keeps_its_beginning(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    found = read_object(text[: data.draw(st.integers(1, len(text)))])
    assert list(found) == list(value)[: len(found)]
    whole = list(found.items())[:-1]
    assert whole == list(value.items())[: len(whole)]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(read_object(text), dict)


@given(st.text(alphabet="{}[]\"':,\\ ab1nu\n"))
def test_any_heap_of_brackets_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(read_object("{" + text), dict)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': 'it's here', 'b': 1}", {"a": "it's here", "b": 1}),
        ('{"a": "he said "hi" twice", "b": 2}', {"a": 'he said "hi" twice', "b": 2}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": "tab\\tand \\u00e9",}', {"a": "tab\tand é"}),
        ("{“kind”: “search”}", {"kind": "search"}),
        ("{kind: search, n: 3}", {"kind": "search", "n": 3}),
        ('{"a": [1, 2, {"b": 3}', {"a": [1, 2, {"b": 3}]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": 1, "b"', {"a": 1}),
        ('<think>maybe {"a": 0}?</think>{"a": 1}', {"a": 1}),
        ('{"a": {"b": "c"}} and {"x": 1}', {"a": {"b": "c"}}),
        ("{}", {}),
        ("{", {}),
    ],
)
def test_broken_answers_that_can_be_read(text: str, expected: dict[str, Any]) -> None:
    assert read_object(text) == expected


@pytest.mark.parametrize("text", ["", "I do not know.", "[1, 2]", "null", "</think>"])
def test_an_answer_without_an_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        read_object(text)


def test_nesting_beyond_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="nest"):
        read_object('{"a":' * 5000)


@pytest.mark.parametrize("odd", ["\\u0000", "\\ud800", "\\udfff!"])
def test_what_no_database_can_hold_is_replaced(odd: str) -> None:
    read = read_object(f'{{"a{odd}": ["b{odd}", {{"c": "d{odd}"}}], "e": 1}}')
    output = json.dumps(read, ensure_ascii=False)
    assert "\x00" not in output
    output.encode()
    assert len(read) == 2
