"""Questions about how a video is built are told from ordinary ones, in any words."""

from __future__ import annotations

from functools import cache

import pytest

from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.heuristics.questions import (
    Asks,
    Order,
    StructureQuestions,
    asks_for_kind,
    order_of,
)
from retrieval.relevance import cosine_scale
from store.home import Home

WEIGHTS = Home.default().weights


@cache
def questions(text: str) -> StructureQuestions:
    encoder = Toolbox(load_profile("local", None).model_copy(update={"text": text}), WEIGHTS).text
    return StructureQuestions(encoder, cosine_scale(encoder))


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("so who's all in this clip", Asks.PEOPLE),
        ("how many persons can you see", Asks.PEOPLE),
        ("which people speak and when do they", Asks.SPEAKERS),
        ("is it one voice or are there several?", Asks.SPEAKERS),
        ("how does the interview start", Asks.BEGINNING),
        ("what are his first words", Asks.BEGINNING),
        ("How does the film end?", Asks.END),
        ("what's the very last thing she says", Asks.END),
        ("can you summarize this for me", Asks.ABOUT),
        ("please give me a short outline of the lecture", Asks.OUTLINE),
        ("which topics are covered?", Asks.OUTLINE),
        ("where was she last seen", Asks.LAST_SEEN),
        ("How much does the ticket cost?", None),
        ("Who is the owner of the farm?", None),
        ("what colour is her jacket", None),
        ("What does the professor say about inflation?", None),
        ("how do I reset the password", None),
    ],
)
def test_a_question_is_told_by_what_it_asks_in_any_words(question: str, asks: Asks | None) -> None:
    assert questions("minilm").of(question) is asks


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("What comes right after the song?", Order("after", "the song")),
        ("what is said before the break", Order("before", "the break")),
        ("When is the harbour first mentioned?", Order("first", "is the harbour", said=True)),
        ("What did he buy after the war?", None),
        ("Who won the first prize?", None),
    ],
)
def test_order_is_asked_for_where_nothing_else_is_named(question: str, order: Order | None) -> None:
    found = order_of(question)
    assert (found and found._replace(subject=" ".join(found.subject.split()))) == order


def test_things_of_a_kind_are_asked_for_by_the_kind() -> None:
    assert asks_for_kind("which wild animals show up?")
    assert not asks_for_kind("what do the animals eat?")
