"""Scores by words are those of bm25s, over all texts or over some of them as if alone."""

from __future__ import annotations

import numpy as np
import pytest
from bm25s import BM25

from retrieval.terms import terms
from retrieval.word_scores import WordIndex, WordScores

WORDS = terms("Ann, Bob, gate, piano, rain, cake, river, stone, yellow, engine")


def made_up(count: int, seed: int = 1) -> list[list[str]]:
    """Texts of up to nine words, some without any; common words are more frequent."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    lengths = rng.integers(0, 10, count)
    return [list(rng.choice(WORDS, n, p=weights / weights.sum())) for n in lengths]


def reference(texts: list[list[str]], query: str) -> np.ndarray:
    ranking = BM25()
    ranking.index(texts, show_progress=False)
    known = [word for word in terms(query) if word in ranking.vocab_dict]
    return ranking.get_scores(known) if known else np.zeros(len(texts), np.float32)


@pytest.mark.parametrize("query", ["Ann at the gate", "rain rain cake", "engine", "a tractor", ""])
def test_scores_are_those_of_the_reference_also_of_a_part_as_if_alone(query: str) -> None:
    texts = made_up(300)
    index, part = WordIndex(texts), np.arange(40, 300, 3)
    whole = WordScores.of_all(texts).of(query)
    assert whole.dtype == np.float32
    assert np.array_equal(whole, reference(texts, query))
    seen = [texts[number] for number in part]
    assert np.array_equal(index.within(part).of(query), reference(seen, query))


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_texts_without_words_match_nothing(texts: list[list[str]]) -> None:
    assert WordScores.of_all(texts).of("gate").tolist() == [0.0] * len(texts)
    assert WordIndex([terms("gate")]).within(np.zeros(0, np.intp)).of("gate").shape == (0,)
