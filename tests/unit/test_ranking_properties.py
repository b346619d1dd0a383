"""Searching a story as a whole: scores in [0, 1] that fall, lines in found, refs that exist."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.line_ranking import best_lines, line_scores
from retrieval.options import supports
from retrieval.ranking import CandidateLines, PreparedQuestion
from tests.support.story import (
    found_at,
    found_of,
    prepared,
    relevance_of,
    row_of,
    vectors_of,
    video_of,
)

WORDS = ("soup", "tent", "train", "coffee", "piano", "Ann", "sings", "the")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=6).filter(any)
QUESTIONS = st.lists(st.sampled_from([*WORDS, "who", "yesterday"]), max_size=5).map(" ".join)
OPTIONS = st.lists(LINES, max_size=4).map(tuple)


def asked(text: str, options: tuple[str, ...], as_of: float | None = None) -> PreparedQuestion:
    return prepared(text or "?", options, as_of)


@given(STORIES, QUESTIONS, OPTIONS, st.none() | st.floats(0, 400))
def test_every_score_is_a_number_and_every_share_a_share(
    story: list[list[str]], text: str, options: tuple[str, ...], as_of: float | None
) -> None:
    found, question = found_of(story), asked(text, options, as_of)
    field = relevance_of(found, question)
    assert field.question.shape == field.cells.shape == (found.lines.cell_count,)
    assert field.options.shape[0] == len(options)
    for scores in (field.question, field.options, field.support, field.lines):
        assert np.isfinite(scores).all()
    support = supports(found, question, field)
    assert len(support) == len(options)
    assert sum(one.share for one in support) == pytest.approx(1 if options else 0)
    known = {f"m{number}" for number in found.lines.arrays.id.tolist()}
    assert {ref for one in support for ref in one.evidence} <= known


@given(STORIES, QUESTIONS, OPTIONS, st.integers(1, 5))
def test_moments_are_different_clips_of_the_story_best_first(
    story: list[list[str]], text: str, options: tuple[str, ...], limit: int
) -> None:
    found, question = found_of(story), asked(text, options)
    moments = best_lines(found, question, relevance_of(found, question), limit, None)
    assert len(moments) <= min(limit, found.lines.cell_count)
    assert len({one.cell for one in moments}) == len(moments)
    scores = [one.score for one in moments]
    assert scores == sorted(scores, reverse=True)
    for one in moments:
        assert int(found.lines.cell_of_line[one.line]) == one.cell
        assert (one.option is not None) == bool(options)


@given(STORIES, STORIES, QUESTIONS, OPTIONS)
def test_what_comes_after_the_moment_of_asking_has_no_say(
    story: list[list[str]], later: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    last = len(story) - 1
    now, then = found_of(story), found_at(last, video_of([*story, *later]))
    question = asked(text, options)
    one, other = relevance_of(now, question), relevance_of(then, question)
    assert np.allclose(one.cells, other.cells)
    assert ranked(now, question) == ranked(then, question)


def ranked(found: CandidateLines, question: PreparedQuestion) -> list[int]:
    moments = best_lines(found, question, relevance_of(found, question), 5, None)
    return [row_of(found, one.line).id for one in moments]


@given(STORIES, LINES)
def test_a_line_s_own_words_find_it_or_one_that_has_them_all(
    story: list[list[str]], words: str
) -> None:
    found = found_of([*story, [f"{words} zebra"]])
    (first, *_) = ranked(found, asked(f"{words} zebra", ()))
    texts = {row.id: row.text for _, row in found.lines.rows}
    assert "zebra" in texts[first]


@given(STORIES, QUESTIONS, OPTIONS)
def test_options_in_another_order_have_the_same_support(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    found = found_of(story)
    plain = supports(found, asked(text, options), relevance_of(found, asked(text, options)))
    turned = asked(text, tuple(reversed(options)))
    other = supports(found, turned, relevance_of(found, turned))
    assert [one.text for one in reversed(other)] == [one.text for one in plain]
    for one, same in zip(plain, reversed(other), strict=True):
        assert one.share == pytest.approx(same.share, abs=1e-6)


@given(STORIES, QUESTIONS, OPTIONS)
def test_lines_are_scored_one_by_one_as_all_together(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    found, question = found_of(story), asked(text, options)
    field = relevance_of(found, question)
    every = np.arange(found.lines.line_count)
    scores = line_scores(found, field, every)
    assert scores.shape == (max(1, len(options)), found.lines.line_count)
    assert np.isfinite(scores).all()
    vectors = vectors_of(question)
    assert vectors.options.shape[0] in (0, len(options))
