"""Searching a story as a whole: scores in [0, 1] that fall, lines in view, refs that exist."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.moments import best_moments, line_scores
from retrieval.options import supports
from retrieval.ranking import PreparedQuestion
from retrieval.view_index import ViewIndex
from tests.support.story import field_of, index_of, vectors_of, view_at, view_of

WORDS = ("soup", "tent", "train", "coffee", "piano", "Ann", "sings", "the")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=6).filter(any)
QUESTIONS = st.lists(st.sampled_from([*WORDS, "who", "yesterday"]), max_size=5).map(" ".join)
OPTIONS = st.lists(LINES, max_size=4).map(tuple)


def asked(text: str, options: tuple[str, ...], as_of: float | None = None) -> PreparedQuestion:
    return PreparedQuestion(text or "?", options, as_of)


@given(STORIES, QUESTIONS, OPTIONS, st.none() | st.floats(0, 400))
def test_every_score_is_a_number_and_every_share_a_share(
    story: list[list[str]], text: str, options: tuple[str, ...], as_of: float | None
) -> None:
    view, question = view_of(story), asked(text, options, as_of)
    field = field_of(view, question)
    assert field.question.shape == field.cells.shape == (view.cell_count,)
    assert field.options.shape[0] == len(options)
    for scores in (field.question, field.options, field.support, field.lines):
        assert np.isfinite(scores).all()
    found = supports(view, question, field)
    assert len(found) == len(options)
    assert sum(one.share for one in found) == pytest.approx(1 if options else 0)
    known = {f"m{number}" for number in view.ids.tolist()}
    assert {ref for one in found for ref in one.evidence} <= known


@given(STORIES, QUESTIONS, OPTIONS, st.integers(1, 5))
def test_moments_are_different_clips_of_the_story_best_first(
    story: list[list[str]], text: str, options: tuple[str, ...], limit: int
) -> None:
    view, question = view_of(story), asked(text, options)
    found = best_moments(view, question, field_of(view, question), limit, None)
    assert len(found) <= min(limit, view.cell_count)
    assert len({one.cell for one in found}) == len(found)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    for one in found:
        assert int(view.cell_of_line[one.line]) == one.cell
        assert (one.option is not None) == bool(options)


@given(STORIES, STORIES, QUESTIONS, OPTIONS)
def test_what_comes_after_the_moment_of_asking_has_no_say(
    story: list[list[str]], later: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    last = len(story) - 1
    now, then = view_of(story), view_at(last, index_of([*story, *later]))
    question = asked(text, options)
    one, other = field_of(now, question), field_of(then, question)
    assert np.allclose(one.cells, other.cells)
    assert ranked(now, question) == ranked(then, question)


def ranked(view: ViewIndex, question: PreparedQuestion) -> list[int]:
    found = best_moments(view, question, field_of(view, question), 5, None)
    return [view.line(one.line)[1].id for one in found]


@given(STORIES, LINES)
def test_a_line_s_own_words_find_it_or_one_that_has_them_all(
    story: list[list[str]], words: str
) -> None:
    view = view_of([*story, [f"{words} zebra"]])
    (first, *_) = ranked(view, asked(f"{words} zebra", ()))
    texts = {row.id: row.text for _, row in map(view.line, range(view.line_count))}
    assert "zebra" in texts[first]


@given(STORIES, QUESTIONS, OPTIONS)
def test_options_in_another_order_have_the_same_support(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    view = view_of(story)
    plain = supports(view, asked(text, options), field_of(view, asked(text, options)))
    turned = asked(text, tuple(reversed(options)))
    other = supports(view, turned, field_of(view, turned))
    assert [one.text for one in reversed(other)] == [one.text for one in plain]
    for one, same in zip(plain, reversed(other), strict=True):
        assert one.share == pytest.approx(same.share, abs=1e-6)


@given(STORIES, QUESTIONS, OPTIONS)
def test_lines_are_scored_one_by_one_as_all_together(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    view, question = view_of(story), asked(text, options)
    field = field_of(view, question)
    every = np.arange(view.line_count)
    scores = line_scores(view, question, field, every)
    assert scores.shape == (max(1, len(options)), view.line_count)
    assert np.isfinite(scores).all()
    vectors = vectors_of(question, view)
    assert vectors.options.shape[0] in (0, len(options))
