"""Search terms, and questions restated like lines of memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.heuristics.questions import core_question, statement
from retrieval.terms import stem, terms


@pytest.mark.parametrize(
    "forms",
    [
        ["wash", "washes", "washed", "washing"],
        ["carry", "carries", "carried", "carrying"],
        ["stop", "stopped", "stopping", "stops"],
        ["move", "moved", "moving", "moves"],
        ["quick", "quickly"],
    ],
)
def test_inflections_share_a_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["is", "bed", "gas", "ring", "one"])
def test_short_words_stay(word: str) -> None:
    assert stem(word).startswith(word[:2])


def test_terms_have_no_stop_words() -> None:
    assert terms("Who was the last person to wash the dishes before me?") == [
        "person",
        "wash",
        "dish",
    ]


def test_possessives_are_found_by_name() -> None:
    assert terms("Lucia's cup") == terms("Lucia’s cup") == ["lucia", "cup"]


def test_a_tag_is_one_term() -> None:
    assert terms("<face_3> waves at <voice_12>") == ["face_3", "voice_12", "wav"]


def test_accents_and_case_fold() -> None:
    assert terms("CAFÉ Übung") == ["café", "übung"]


def test_scripts_without_spaces_are_cut_in_pairs() -> None:
    assert set(terms("東京タワー")) & set(terms("東京駅"))
    assert terms("水") == ["水"]


@given(st.text())
def test_terms_of_any_text_are_plain_words(text: str) -> None:
    assert all(term and not any(mark.isspace() for mark in term) for term in terms(text))


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("Who washed the dishes?", "Who washed the dishes"),
        ("Now I am cooking in the kitchen, who bought the salt today?", "who bought the salt"),
        ("When was the last time that I watered the plants?", "I watered the plants"),
        ("What did we eat the previous time?", "What did we eat"),
        ("What did Tasha drink yesterday?", "What did Tasha drink"),
        ("Now, who?", "Now, who"),
    ],
)
def test_framing_is_removed_from_questions(question: str, plain: str) -> None:
    assert core_question(question) == plain


@pytest.mark.parametrize(
    ("question", "option", "said"),
    [
        ("Who washed the dishes?", "Tasha", "Tasha washed the dishes"),
        ("Who washed the dishes?", "me", "I washed the dishes"),
        ("Who did I call?", "Lucia", "I call Lucia"),
        ("Who did I call?", "Me", "I call me"),
        ("Whose cup broke?", "Alice", "Alice's cup broke"),
        ("Whose cup broke?", "Alice's", "Alice's cup broke"),
        ("Why did the bowl fall?", "Because it was wet.", "the bowl fall Because it was wet"),
        ("What is on the table?", "A cup.", "What is on the table A cup"),
    ],
)
def test_questions_are_restated_with_an_option(question: str, option: str, said: str) -> None:
    assert statement(question, option) == said


@given(st.text(), st.text())
def test_any_question_and_option_can_be_restated(question: str, option: str) -> None:
    core_question(question)
    assert isinstance(statement(question, option), str)


def test_an_option_is_text_not_a_pattern() -> None:
    assert statement("Who won?", r"\1 \g<0>") == r"\1 \g<0> won"
