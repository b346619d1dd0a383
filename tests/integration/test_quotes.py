"""What answers an open question: whole sentences, text on screen by lines, and chapters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from domain.asking import Aim, Mode, Quote, answering
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from retrieval.retrievers import Retrievers
from retrieval.terms import terms
from store.database import Store
from tests.support.remembered import Said, Tools, watch

V = "abcdefabcdefabcd"
SLIDE = "OUR TEAM / Ann Lee, editor / Bob Ray, sound / Price list: tea 3 euros / Open till nine"
TALK = (
    (
        Said("We started the bakery with two ovens.", 2, speaker="<voice_1>"),
        Said("Why do we rise so early?", 6, speaker="<voice_1>"),
        Said("Because the dough needs four hours.", 9, speaker="<voice_1>"),
        Said(SLIDE, 12, source="read"),
        Said("Seen: 2 people, a cup.", 14, source="objects"),
    ),
    (
        Said("Our neighbours bring the flour on", 2, speaker="<voice_1>"),
        Said("Mondays with a small van.", 5, speaker="<voice_1>"),
        Said("The rent went up a lot.", 9, speaker="<voice_1>"),
    ),
)


class CommonWords:
    """Scores a passage by the share of the question's words that it has."""

    name = "common words"

    def scores(self, query: str, passages: list[str]) -> NDArray[np.float32]:
        asked = set(terms(query)) or {"nothing"}
        shares = [len(asked & set(terms(one))) / len(asked) for one in passages]
        return np.array([min(0.999, max(0.001, share)) for share in shares], dtype=np.float32)


@pytest.fixture
def bakery(store: Store) -> Retrievers:
    watch(store, V, TALK)
    return Retrievers(store, Tools(reranker=CommonWords()), Settings())


def quotes(search: Retrievers, question: str) -> tuple[Quote, ...]:
    view = MemoryView(scopes=(Scope(video=V, last_clip=1),))
    aim = Aim(text=question, moments=20, asked=(question,))
    return search.search(view, Mode.EVENT, question, aim=aim).quotes


def test_a_sentence_is_quoted_whole_and_with_one_that_answers_after_it(bakery: Retrievers) -> None:
    flour = quotes(bakery, "When do the neighbours bring the flour?")[0]
    assert flour.text.startswith(
        "<voice_1>: Our neighbours bring the flour on Mondays with a small"
    )
    rise = quotes(bakery, "Why do they rise early?")[0]
    assert "Because the dough needs four hours." in rise.text
    assert rise.kind == "said"


def test_text_on_screen_is_quoted_by_its_lines(bakery: Retrievers) -> None:
    best = quotes(bakery, "Who is the editor of the team?")[0]
    assert best.kind == "read"
    assert "Ann Lee, editor" in best.text
    assert len(best.text) < 200


def test_what_names_no_number_is_less_likely_to_answer_how_much(bakery: Retrievers) -> None:
    def score(question: str, part: str) -> float:
        return max(one.score for one in quotes(bakery, question) if part in one.text)

    assert score("How much is the rent?", "rent went") < score("What of the rent?", "rent went")


def test_what_is_not_in_memory_is_not_likely_to_be_told(bakery: Retrievers) -> None:
    assert answering(quotes(bakery, "Which insurance covers the submarine?")) == ()


def test_kinds_stand_side_by_side(bakery: Retrievers) -> None:
    kinds = {one.kind for one in quotes(bakery, "What is there in the bakery?")}
    assert kinds == {"said", "read", "seen"}
