"""Ranking compared with slow reference implementations: counts, windows, BM25 and shares."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.memories import Scope
from retrieval.keyframe_mode import ScoredKeyframe, spread_over_clips
from retrieval.ranking import window_fits
from retrieval.relevance import (
    CosineScale,
    closeness,
    closeness_threshold,
    coverage,
    decayed,
    standardise,
)
from retrieval.signals import K1, REACH, B, inverse_document_frequency, word_hits
from retrieval.terms import terms
from store.queries.clip_contents import KeyframeOnClip
from tests.support.remembered import CLIP_MS
from tests.support.story import Story, candidates_at, candidates_of, video_of

WORDS = ("soup", "tent", "train", "coffee", "piano")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=8).filter(any)
SCORES = st.floats(-20, 20)


@given(STORIES)
def test_every_line_belongs_to_one_cell(story: list[list[str]]) -> None:
    lines = candidates_of(story).lines
    held = [clip for clip, texts in enumerate(story) if texts]
    texts = [text for own in story for text in own]
    assert [lines.line(n)[1].text for n in range(lines.line_count)] == texts
    assert lines.cell_clip.tolist() == held
    for number in range(lines.line_count):
        assert held[int(lines.cell_of_line[number])] == lines.line(number)[1].clip
    assert lines.lines_of(range(lines.cell_count)).tolist() == list(range(lines.line_count))
    assert lines.times.tolist() == [CLIP_MS * (clip + 0.5) / 1000 for clip in held]
    follows = [n > 0 and held[n - 1] == held[n] - 1 for n in range(len(held))]
    assert lines.follows.tolist() == follows


@given(STORIES, STORIES, st.integers(-1, 9))
def test_places_of_different_videos_are_never_adjacent(
    one: list[list[str]], other: list[list[str]], last: int
) -> None:
    found = candidates_at(last, video_of(one, "a"), video_of(other, "b", first=2))
    seen = [("a", n) for n, lines in enumerate(one) if lines and n <= last]
    seen += [("b", n) for n, lines in enumerate(other, start=2) if lines and n <= last]
    for video, clips in (("a", range(12)), ("b", range(12)), ("c", range(12))):
        mine = [n for n, (name, _) in enumerate(seen) if name == video]
        assert found.lines.cells_of(video, clips).tolist() == mine
    places = found.places.tolist()
    edges = [n for n in range(1, len(seen)) if seen[n][0] != seen[n - 1][0]]
    assert all(places[n] - places[n - 1] >= REACH for n in edges)
    assert [found.hits.clip_at(place) for place in places] == [
        ("ab".index(name), clip) for name, clip in seen
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.sampled_from([0, 1, 2, 5]))
def test_word_counts_cover_the_window(counts: list[int], half: int) -> None:
    held = {0: np.array([(0, clip, count) for clip, count in enumerate(counts)])}
    scope = Scope(video="v", last_clip=len(counts) - 1)
    hits = word_hits([scope], ["soup"], held, len(counts))
    near = [sum(counts[max(0, n - half) : n + half + 1]) for n in range(len(counts))]
    assert hits.window_frequencies("soup", half)[: len(counts)].tolist() == near


def slow_bm25(story: Story, word: str, half: int) -> list[float]:
    """BM25 of one word at every clip, in lines."""
    with_word = [sum(word in terms(text) for text in lines) for lines in story]
    cells = sum(1 for lines in story if lines)
    mean = sum(map(len, story)) / max(1, cells)
    scores = []
    around = [range(max(0, n - half), min(len(story), n + half + 1)) for n in range(len(story))]
    whole = [sum(with_word[i] for i in near) for near in around]
    holding = min(cells, sum(count > 0 for count in whole))
    for n, near in enumerate(around):
        held = whole[n] if half != 1 else (whole[n] + with_word[n]) / 2
        length = sum(len(story[i]) for i in near) / mean / (2 * half + 1)
        norm = K1 * (1 - B + B * length)
        weight = math.log(1 + (cells - holding + 0.5) / (holding + 0.5))
        scores.append(weight * held * (K1 + 1) / (held + norm))
    return scores


@given(STORIES, st.sampled_from(WORDS), st.sampled_from([0, 1, 3]))
def test_words_score_by_okapi_bm25(story: list[list[str]], word: str, half: int) -> None:
    hits = candidates_of(story).hits
    expected = slow_bm25(story, word, half) if word in hits.counts else [0.0] * len(story)
    assert hits.bm25([word], half)[: len(story)].tolist() == pytest.approx(expected)


@given(st.integers(1, 10_000), st.data())
def test_rarer_words_have_a_higher_inverse_document_frequency(
    cells: int, data: st.DataObject
) -> None:
    fewer, more = sorted(data.draw(st.tuples(st.integers(0, cells), st.integers(0, cells))))
    assert inverse_document_frequency(cells, fewer) >= inverse_document_frequency(cells, more) > 0


@given(STORIES, st.sets(st.sampled_from([*WORDS, "nowhere"])), st.data())
def test_coverage_grows_with_lines(
    story: list[list[str]], words: set[str], data: st.DataObject
) -> None:
    found = candidates_of(story)
    rows = [row for _, row in found.lines.rows]
    weights = {word: found.hits.inverse_document_frequency(word) for word in words}
    few = data.draw(st.lists(st.sampled_from(rows), max_size=3))
    more = few + data.draw(st.lists(st.sampled_from(rows), max_size=3))
    assert 0 <= coverage(few, weights) <= coverage(more, weights) <= 1 + 1e-9
    held = {word for row in rows for word in terms(row.text)}
    whole = coverage(rows, weights)
    assert whole == pytest.approx(1.0) if words and words <= held else whole < 1 or not words


@given(st.floats(-1, 0.99), st.floats(-1, 1), st.floats(0, 1))
def test_closeness_is_in_the_unit_interval(unrelated: float, cosine: float, has: float) -> None:
    near = CosineScale(unrelated).nearness(cosine)
    assert 0 <= near <= 1
    assert CosineScale(unrelated).nearness(unrelated) == pytest.approx(0, abs=1e-9)
    assert CosineScale(unrelated).nearness(1.0) == pytest.approx(1)
    assert max(near, has) - 1e-9 <= closeness(near, has) <= 1
    assert closeness(near, has) == pytest.approx(closeness(has, near))


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=5).map(sorted))
def test_the_closeness_threshold_grows_with_candidates(candidates: list[int]) -> None:
    wanted = [closeness_threshold(count) for count in candidates]
    assert wanted == sorted(wanted)
    assert 0.2 < closeness_threshold(0) == closeness_threshold(1) <= wanted[0]
    assert wanted[-1] < 0.6


@given(st.floats(0, 1), st.lists(SCORES, min_size=1, max_size=6))
def test_decayed_scores_keep_the_order_of_the_ranking(best: float, scores: list[float]) -> None:
    falling = sorted(scores, reverse=True)
    shown = decayed(best, falling)
    assert shown[0] == pytest.approx(best)
    assert shown == sorted(shown, reverse=True)
    assert all(0 <= one <= 1 for one in shown)


@given(st.lists(SCORES, min_size=1, max_size=30).map(np.array))
def test_z_scores_keep_the_order(values: np.ndarray) -> None:
    scores = standardise(values)
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
        ScoredKeyframe(video, KeyframeOnClip(n, clip, 1000 * n, 1.0, "0" * 64, None), score, None)
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
    ("half", "cells", "output"), [(0, 1, True), (1, 11, False), (1, 12, True), (3, 27, False)]
)
def test_a_window_is_used_if_the_view_is_several_windows_long(
    half: int, cells: int, output: bool
) -> None:
    assert window_fits(half, cells) is output
