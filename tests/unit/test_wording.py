"""Questions taken apart by rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Action, Mode
from domain.ledger import start
from domain.settings import AskSettings
from nodes.harness.constrain import Bounds, check
from nodes.reasoners.wording import Kind, as_query, decompose, kind_of, several, stated

ASK = AskSettings()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who came?", ["Who came?"]),
        ("Who came and what did they bring?", ["Who came", "what did they bring?"]),
        ("Who came? Where did they sit?", ["Who came", "Where did they sit?"]),
        ("What do Ann and Bob eat?", ["What do Ann and Bob eat?"]),
        ("Why did Ann leave?", ["What happened: Ann leave", "The cause: Ann leave"]),
        ("Did Ann leave?", ["Evidence that Ann leave", "Evidence against: Ann leave"]),
        ("Isn't it raining?", ["Evidence that it raining", "Evidence against: it raining"]),
        ("the colour of the car", ["the colour of the car"]),
    ],
)
def test_a_question_is_split_by_what_it_asks(question: str, parts: list[str]) -> None:
    assert [draft.text for draft in decompose(question, ())] == parts


def test_the_cause_waits_for_what_happened() -> None:
    assert decompose("Why did Ann leave?", ())[1].depends == ("t1",)


def test_a_question_with_options_is_one_subtask_since_options_are_compared_at_the_end() -> None:
    assert len(decompose("Did Ann leave and why did she?", ("yes", "no"))) == 1
    assert several("Who came and why did they?")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("What did Ann open?", "Ann open"),
        ("Who opens the gate?", "opens the gate"),
        ("How many cups are on the table?", "cups are on the table"),
        ("In which room is the piano?", "room is the piano"),
        ("By how much is the risk increased?", "the risk increased"),
        ("Does it rain?", "it rain"),
        ("The cause: Ann leave", "Ann leave"),
        ("Why?", "Why"),
    ],
)
def test_a_question_becomes_a_statement_with_a_gap(text: str, statement: str) -> None:
    assert stated(text) == statement


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What is the video about?", Kind.BROAD),
        ("Why did Ann leave?", Kind.CAUSE),
        ("The cause: Ann leave", Kind.CAUSE),
        ("What colour is the car?", Kind.LOOKS),
        ("What is Ann wearing?", Kind.LOOKS),
        ("Where is the car?", Kind.FACT),
    ],
)
def test_the_words_of_a_question_tell_its_kind(text: str, kind: Kind) -> None:
    assert kind_of(text) is kind


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_whatever_is_asked_becomes_a_legal_plan_and_queries_that_the_guard_takes(
    question: str,
) -> None:
    ledger, _ = start(decompose(question, ()), question, ASK)
    for task in ledger.subtasks:
        action = Action(kind="search", mode=Mode.EVENT, query=as_query(task.text))
        assert check(action, Bounds(subtask=task.text), ASK).accepted


@pytest.mark.parametrize(
    "question",
    ["Who?", "What did Ann open?", "the red car", "Ann", "Is it so?", "Who is who?", "why why?"],
)
def test_common_and_odd_questions_give_queries_that_the_guard_takes(question: str) -> None:
    for draft in decompose(question, ()):
        action = Action(kind="search", mode=Mode.EVENT, query=as_query(draft.text))
        assert check(action, Bounds(subtask=draft.text), ASK).complaint == ""
