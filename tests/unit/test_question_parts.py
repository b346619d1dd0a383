"""Questions taken apart by rules."""

from __future__ import annotations

from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.harness.constrain import ActionBounds, check
from agent.reasoners.concluding import (
    QuestionKind,
    as_query,
    as_statement,
    decompose,
    has_rule_wording,
    kind_of,
    query_of,
    question_parts_of,
    ranking_text_of,
)
from domain.asking import Action, Mode, Question, Subtask
from domain.ledger import new_ledger
from domain.settings import AskSettings

ASK = AskSettings()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who came?", ["Who came?"]),
        ("Who came and what did they bring?", ["Who came", "what did they bring?"]),
        ("Who came? Where did they sit?", ["Who came", "Where did they sit?"]),
        ("What do Ann and Bob eat?", ["What do Ann and Bob eat?"]),
        ("Why did Ann leave?", ["Why did Ann leave?"]),
        ("the colour of the car", ["the colour of the car"]),
    ],
)
def test_a_question_is_split_by_what_it_asks(question: str, parts: list[str]) -> None:
    assert [draft.text for draft in decompose(question, ())] == parts


def test_each_option_is_a_subtask_with_words_of_its_own() -> None:
    asked = Question(text="Who opens the gate?", videos=("v",), options=("Ann", "Bob"))
    ledger, _ = new_ledger(decompose(asked.text, asked.options), asked.text, ASK)
    assert [(task.text, task.options) for task in ledger.subtasks] == [
        ("Evidence for A: Ann", ("A",)),
        ("Evidence for B: Bob", ("B",)),
    ]
    queries = [query_of(task, asked) for task in ledger.subtasks]
    assert queries == ["Ann opens the gate", "Bob opens the gate"]
    assert {ranking_text_of(task, asked) for task in ledger.subtasks} == {asked.text}


@pytest.mark.parametrize("count", [1, 4, 5, 6, 7, 11, 26])
def test_more_options_than_subtasks_share_them_evenly(count: int) -> None:
    drafts = decompose("Who came?", tuple(f"guest {n}" for n in range(count)))
    groups = [draft.options for draft in drafts]
    assert len(drafts) == min(5, count)
    assert "".join(letter for group in groups for letter in group) == ascii_uppercase[:count]
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_a_subtask_that_was_reworded_is_searched_by_its_new_words() -> None:
    asked = Question(text="Who opens the gate?", videos=("v",), options=("Ann", "Bob"))
    task = Subtask(id="t1", text="somebody with a key at the fence", options=("A",))
    assert not has_rule_wording(task, asked)
    assert ranking_text_of(task, asked) == query_of(task, asked)


def test_a_query_that_restates_a_question_is_read_as_the_question() -> None:
    asked = Question(text="Why did Ann leave?", videos=("v",))
    task = Subtask(id="t1", text=asked.text)
    assert (query_of(task, asked), ranking_text_of(task, asked)) == ("Ann leave", asked.text)
    assert question_parts_of("Who came and why did they?")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("What did Ann open?", "Ann open"),
        ("Who opens the gate?", "opens the gate"),
        ("How many cups are on the table?", "cups are on the table"),
        ("In which room is the piano?", "room is the piano"),
        ("By how much is the risk increased?", "the risk increased"),
        ("Does it rain?", "it rain"),
        ("Why?", "Why"),
    ],
)
def test_a_question_becomes_a_statement_with_a_gap(text: str, statement: str) -> None:
    assert as_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What is the video about?", QuestionKind.BROAD),
        ("Why did Ann leave?", QuestionKind.CAUSE),
        ("What colour is the car?", QuestionKind.LOOKS),
        ("What is Ann wearing?", QuestionKind.LOOKS),
        ("Where is the car?", QuestionKind.FACT),
    ],
)
def test_the_words_of_a_question_tell_its_kind(text: str, kind: QuestionKind) -> None:
    assert kind_of(text) is kind


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_whatever_is_asked_becomes_a_legal_plan_and_queries_that_the_guard_takes(
    question: str,
) -> None:
    ledger, _ = new_ledger(decompose(question, ()), question, ASK)
    for task in ledger.subtasks:
        action = Action(kind="search", mode=Mode.EVENT, query=as_query(task.text))
        assert check(action, ActionBounds(subtask=task.text), ASK).accepted


@pytest.mark.parametrize(
    "question",
    ["Who?", "What did Ann open?", "the red car", "Ann", "Is it so?", "Who is who?", "why why?"],
)
def test_common_and_odd_questions_give_queries_that_the_guard_takes(question: str) -> None:
    for draft in decompose(question, ()):
        action = Action(kind="search", mode=Mode.EVENT, query=as_query(draft.text))
        assert check(action, ActionBounds(subtask=draft.text), ASK).complaint == ""
