"""Properties of ranking any story: finite scores, shares that sum to 1, refs that exist."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking import CandidateLines, PreparedQuestion, best_lines
from tests.support.story import candidates_of, prepare_question, relevance_of, row_of

WORDS = ("soup", "tent", "train", "coffee", "piano", "Ann", "sings", "the")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=6).filter(any)
QUESTIONS = st.lists(st.sampled_from([*WORDS, "who", "yesterday"]), max_size=5).map(" ".join)
OPTIONS = st.lists(LINES, max_size=4).map(tuple)


def question_of(
    text: str, options: tuple[str, ...], as_of: float | None = None
) -> PreparedQuestion:
    return prepare_question(text or "?", options, as_of)


@given(STORIES, QUESTIONS, OPTIONS, st.none() | st.floats(0, 400))
def test_scores_are_finite(
    story: list[list[str]], text: str, options: tuple[str, ...], as_of: float | None
) -> None:
    candidates, question = candidates_of(story), question_of(text, options, as_of)
    relevance = relevance_of(candidates, question)
    assert relevance.question.shape == relevance.cells.shape == (candidates.lines.cell_count,)
    assert relevance.options.shape[0] == len(options)
    for scores in (relevance.question, relevance.options, relevance.support, relevance.lines):
        assert np.isfinite(scores).all()
    assert relevance.support.shape[0] == len(options)


@given(STORIES, QUESTIONS, OPTIONS, st.integers(1, 5))
def test_ranked_lines_are_of_different_clips_best_first(
    story: list[list[str]], text: str, options: tuple[str, ...], limit: int
) -> None:
    candidates, question = candidates_of(story), question_of(text, options)
    lines = best_lines(candidates, question, relevance_of(candidates, question), limit)
    assert len(lines) <= min(limit, candidates.lines.cell_count)
    assert len({item.cell for item in lines}) == len(lines)
    scores = [item.score for item in lines]
    assert scores == sorted(scores, reverse=True)
    for item in lines:
        assert int(candidates.lines.cell_of_line[item.line]) == item.cell
        assert (item.option is not None) == bool(options)


def ranked(candidates: CandidateLines, question: PreparedQuestion) -> list[int]:
    lines = best_lines(candidates, question, relevance_of(candidates, question), 5)
    return [row_of(candidates, item.line).id for item in lines]


@given(STORIES, LINES)
def test_a_lines_own_words_find_it_or_one_with_all(story: list[list[str]], words: str) -> None:
    candidates = candidates_of([*story, [f"{words} zebra"]])
    (first, *_) = ranked(candidates, question_of(f"{words} zebra", ()))
    assert "zebra" in {row.id: row.text for _, row in candidates.lines.rows}[first]


@given(STORIES, QUESTIONS, OPTIONS)
def test_options_in_another_order_have_the_same_support(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    candidates = candidates_of(story)
    plain = relevance_of(candidates, question_of(text, options)).support
    other = relevance_of(candidates, question_of(text, options[::-1])).support
    assert np.allclose(plain, other[::-1], atol=1e-6)
