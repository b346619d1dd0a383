"""Searching beside plain definitions: counts, windows, scores and shares, computed the slow way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.closeness import Yardstick, closeness, coverage, faded, least
from retrieval.keyframe_mode import Scored, spread_over_clips
from retrieval.lexical import K1, B, bm25, rarity, spread
from retrieval.moments import lines_of
from retrieval.options import TOP_CELLS, leaning, shares, soft_maximum
from retrieval.ranking import PreparedQuestion, fits, now
from retrieval.relevance import Relevance, standard
from retrieval.terms import terms
from retrieval.time_grid import grid_of
from retrieval.view_index import ViewIndex
from store.queries.clip_contents import KeyframeOnClip
from tests.support.remembered import CLIP_MS
from tests.support.story import Story, index_of, view_at, view_of

WORDS = ("soup", "tent", "train", "coffee", "piano")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=8).filter(any)
SCORES = st.floats(-20, 20)


def cells_in(story: Story) -> list[tuple[int, list[str]]]:
    """The clips that have lines, with the terms of each."""
    return [(n, terms(" ".join(lines))) for n, lines in enumerate(story) if lines]


@given(STORIES)
def test_an_index_counts_every_word_where_it_is(story: list[list[str]]) -> None:
    view, held = view_of(story), cells_in(story)
    assert view.cell_count == len(held)
    assert view.line_count == sum(map(len, story))
    assert view.lengths.tolist() == [len(words) for _, words in held]
    for word in (*WORDS, "nowhere"):
        counts = {place: Counter(words)[word] for place, (_, words) in enumerate(held)}
        posting = view.posting(word)
        found = {} if posting is None else dict(zip(posting.cells, posting.counts, strict=True))
        assert found == {place: count for place, count in counts.items() if count}


@given(STORIES)
def test_every_line_is_of_one_cell_and_back(story: list[list[str]]) -> None:
    view = view_of(story)
    texts = [line for lines in story for line in lines]
    assert [view.line(n)[1].text for n in range(view.line_count)] == texts
    for number in range(view.line_count):
        _, row = view.line(number)
        assert view.cell(int(view.cell_of_line[number]))[1].clip == row.clip
    every = lines_of(view, np.arange(view.cell_count))
    assert every.tolist() == list(range(view.line_count))
    times = view.times
    assert times.tolist() == [CLIP_MS * (n + 0.5) / 1000 for n, _ in cells_in(story)]


@given(STORIES, STORIES, st.integers(-1, 9))
def test_videos_lie_one_after_the_other_and_never_touch(
    one: list[list[str]], other: list[list[str]], last: int
) -> None:
    view = view_at(last, index_of(one, "a"), index_of(other, "b", first=2))
    seen = [("a", n) for n, lines in enumerate(one) if lines and n <= last]
    seen += [("b", n) for n, lines in enumerate(other, start=2) if lines and n <= last]
    assert [(video, row.clip) for video, row in map(view.cell, range(view.cell_count))] == seen
    assert np.all(np.diff(view.keys) > 0) if view.cell_count else not seen
    edges = [n for n in range(1, len(seen)) if seen[n][0] != seen[n - 1][0]]
    assert all(view.keys[n] - view.keys[n - 1] >= 1000 for n in edges)
    for video, clips in (("a", range(12)), ("b", range(12)), ("c", range(12))):
        mine = [n for n, (name, _) in enumerate(seen) if name == video]
        assert view.cells_of(video, clips).tolist() == mine


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12),
    st.sampled_from([0, 1, 2, 5]),
)
def test_counts_spread_as_far_as_the_window_reaches(made: list[tuple[int, int]], half: int) -> None:
    keys = np.cumsum([step for step, _ in made])
    counts = np.array([count for _, count in made], dtype=np.float32)
    near = [counts[np.abs(keys - key) <= half].sum() for key in keys]
    own = [counts[keys == key].sum() for key in keys]
    weak = [0.5 * (around + here) for around, here in zip(near, own, strict=True)]
    assert spread(counts, grid_of(keys), half).tolist() == pytest.approx(
        weak if half == 1 else near
    )


@given(
    st.lists(st.tuples(st.integers(1, 300), st.sampled_from([0, 1, 5, 99])), min_size=1, max_size=9)
)
def test_what_is_at_the_places_of_cells_is_found_in_stretches_and_one_by_one(
    made: list[tuple[int, int]],
) -> None:
    steps = [step for length, gap in made for step in (gap, *[1] * (length - 1))]
    grid = grid_of(np.cumsum(steps))
    values = np.arange(grid.size) ** 2 % 3
    assert grid.of_cells(values).tolist() == values[grid.places].tolist()
    assert grid.holding(values) == np.count_nonzero(values[grid.places])


def slow_bm25(view: ViewIndex, words: set[str], half: int) -> list[float]:
    lengths = spread(view.lengths, grid_of(view.keys), half)
    mean = max(float(lengths.mean()), 1e-6)
    scores = [0.0] * view.cell_count
    for word in words:
        counts = np.zeros(view.cell_count, dtype=np.float32)
        posting = view.posting(word)
        if posting is not None:
            counts[posting.cells] = posting.counts
        held = spread(counts, grid_of(view.keys), half)
        weight = math.log(1 + (len(held) - (held > 0).sum() + 0.5) / ((held > 0).sum() + 0.5))
        for n, count in enumerate(held):
            norm = K1 * (1 - B + B * lengths[n] / mean)
            scores[n] += weight * count * (K1 + 1) / (count + norm)
    return scores


@given(STORIES, st.sets(st.sampled_from([*WORDS, "nowhere"])), st.sampled_from([0, 1, 3]))
def test_words_score_as_okapi_defines_it(
    story: list[list[str]], words: set[str], half: int
) -> None:
    view = view_of(story)
    known = {word for word in words if view.posting(word) is not None}
    assert bm25(view, words, [half])[0].tolist() == pytest.approx(
        slow_bm25(view, known, half), rel=1e-4, abs=1e-5
    )


@given(st.integers(1, 10_000), st.data())
def test_a_word_is_worth_more_the_fewer_have_it(cells: int, data: st.DataObject) -> None:
    fewer, more = sorted(data.draw(st.tuples(st.integers(0, cells), st.integers(0, cells))))
    assert rarity(cells, fewer) >= rarity(cells, more) > 0


@given(STORIES, st.sets(st.sampled_from([*WORDS, "nowhere"])), st.data())
def test_more_lines_cover_no_less(
    story: list[list[str]], words: set[str], data: st.DataObject
) -> None:
    view = view_of(story)
    few = data.draw(st.lists(st.integers(0, view.line_count - 1), max_size=3))
    more = few + data.draw(st.lists(st.integers(0, view.line_count - 1), max_size=3))
    assert 0 <= coverage(view, words, few) <= coverage(view, words, more) <= 1 + 1e-9
    held = {word for n in range(view.line_count) for word in terms(view.line(n)[1].text)}
    whole = coverage(view, words, range(view.line_count))
    assert whole == pytest.approx(1.0) if words and words <= held else whole < 1 or not words


@given(st.floats(-1, 0.99), st.floats(-1, 1), st.floats(0, 1))
def test_closeness_is_between_nothing_and_all(unrelated: float, cosine: float, has: float) -> None:
    near = Yardstick(unrelated).nearness(cosine)
    assert 0 <= near <= 1
    assert Yardstick(unrelated).nearness(unrelated) == pytest.approx(0, abs=1e-9)
    assert Yardstick(unrelated).nearness(1.0) == pytest.approx(1)
    assert max(near, has) - 1e-9 <= closeness(near, has) <= 1
    assert closeness(near, has) == pytest.approx(closeness(has, near))


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=5).map(sorted))
def test_the_more_candidates_the_closer_the_best_must_be(candidates: list[int]) -> None:
    wanted = [least(count) for count in candidates]
    assert wanted == sorted(wanted)
    assert 0.2 < least(0) == least(1) <= wanted[0]
    assert wanted[-1] < 0.6


@given(st.floats(0, 1), st.lists(SCORES, min_size=1, max_size=6))
def test_shown_scores_keep_the_order_of_the_ranking(best: float, scores: list[float]) -> None:
    falling = sorted(scores, reverse=True)
    shown = faded(best, falling)
    assert shown[0] == pytest.approx(best)
    assert shown == sorted(shown, reverse=True)
    assert all(0 <= one <= 1 for one in shown)


MATRIX = st.integers(1, 5).flatmap(
    lambda count: st.lists(
        st.lists(SCORES, min_size=3, max_size=3), min_size=count, max_size=count
    ).map(np.array)
)


@given(MATRIX)
def test_shares_of_options_are_a_distribution_in_the_order_of_their_scores(
    scores: np.ndarray,
) -> None:
    peaks = soft_maximum(scores)
    share = shares(peaks)
    assert share.sum() == pytest.approx(1)
    assert (share >= 0).all()
    assert np.all(np.diff(share[np.argsort(peaks, kind="stable")]) >= -1e-12)
    assert np.all(peaks <= scores.max(axis=1) + 1e-9)
    assert np.all(peaks >= scores.mean(axis=1) - 1e-9)
    assert shares(peaks + 7.0).tolist() == pytest.approx(share.tolist())


@given(st.lists(SCORES, min_size=1, max_size=80), st.floats(0.1, 5))
def test_more_support_never_counts_less_and_a_tail_has_no_say(
    row: list[float], more: float
) -> None:
    one = np.array([row])
    assert soft_maximum(one + more)[0] == pytest.approx(soft_maximum(one)[0] + more)
    tail = np.array([[*row, *[-1e3] * TOP_CELLS]])
    if len(row) >= TOP_CELLS:
        assert soft_maximum(tail)[0] == pytest.approx(soft_maximum(one)[0])


@given(MATRIX)
def test_cells_lean_towards_the_option_that_will_be_chosen(scores: np.ndarray) -> None:
    field = Relevance(scores[0], scores, scores, *np.zeros((2, 1, 1), dtype=np.float32))
    lean = leaning(field).options - scores
    share = shares(soft_maximum(scores))
    assert np.allclose(lean, lean[:, :1])
    assert share[lean[:, 0].argmax()] == pytest.approx(share.max())
    assert (lean <= 1e-9).all()
    blank = Relevance(scores[0], scores[:0], scores[:0], field.lines, field.near)
    assert leaning(blank) is blank


@given(st.lists(SCORES, min_size=1, max_size=30).map(np.array))
def test_standard_scores_keep_the_order(values: np.ndarray) -> None:
    scores = standard(values)
    assert abs(scores.mean()) < 1e-6
    assert np.all(np.diff(scores[np.argsort(values, kind="stable")]) >= 0)


FRAMES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 9), SCORES), max_size=12
)


@given(FRAMES, st.randoms(use_true_random=False))
def test_every_clips_best_image_comes_before_any_clips_second(
    made: list[tuple[str, int, int, float]], chance: Random
) -> None:
    scored = [
        Scored(video, KeyframeOnClip(n, clip, 1000 * n, 1.0, "0" * 64, None), score, None)
        for n, (video, clip, _, score) in enumerate(made)
    ]
    order = spread_over_clips(scored)
    assert sorted(one.frame.id for one in order) == list(range(len(made)))
    mixed = list(scored)
    chance.shuffle(mixed)
    assert spread_over_clips(mixed) == order
    turns = Counter[tuple[str, int]]()
    rounds = []
    for one in order:
        rounds.append(turns[(one.video, one.frame.clip)])
        turns[(one.video, one.frame.clip)] += 1
    assert rounds == sorted(rounds)
    for one, following in itertools.pairwise(order):
        if rounds[order.index(one)] == rounds[order.index(following)]:
            assert one.score >= following.score


@pytest.mark.parametrize(
    ("half", "cells", "told"), [(0, 1, True), (1, 11, False), (1, 12, True), (3, 27, False)]
)
def test_a_window_counts_where_the_view_is_several_of_it_long(
    half: int, cells: int, told: bool
) -> None:
    assert fits(half, view_of([["soup"]] * cells)) is told


def test_a_question_is_asked_at_its_moment_or_at_the_end_of_what_was_seen() -> None:
    view = view_of([["soup"], [], ["tent"]])
    assert now(PreparedQuestion("Who?"), view) == 90
    assert now(PreparedQuestion("Who?", as_of_s=12.5), view) == 12.5
    assert now(PreparedQuestion("Who?"), view_at(-1, index_of([["soup"]]))) == 0
