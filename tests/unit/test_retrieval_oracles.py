"""Ranking compared with slow reference implementations, and properties of ranking any story."""

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
from retrieval.candidates import MOST_SPANS, STEP_S, sampled_clips, temporal_spans
from retrieval.keyframe_mode import ScoredKeyframe, spread_over_clips
from retrieval.ranking import PreparedQuestion, best_lines
from retrieval.relevance import CosineScale, closeness, coverage
from retrieval.signals import K1, REACH, B, inverse_document_frequency
from retrieval.terms import terms
from store.queries.clips import KeyframeOnClip
from tests.support.story import (
    Story,
    candidates_at,
    candidates_of,
    prepare_question,
    relevance_of,
    row_of,
    video_of,
)

WORDS = ("soup", "tent", "train", "coffee", "piano")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
STORIES = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=8).filter(any)
SCORES = st.floats(-20, 20)
FRAMES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 9), SCORES), max_size=12
)
WORDS_OF_RANKING = ("soup", "tent", "train", "coffee", "piano", "Ann", "sings", "the")
STORIES_OF_RANKING = st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=6).filter(any)
QUESTIONS = st.lists(st.sampled_from([*WORDS_OF_RANKING, "who", "yesterday"]), max_size=5).map(
    " ".join
)
OPTIONS = st.lists(LINES, max_size=4).map(tuple)
HOUR, DAY = 3600.0, 86_400.0
VIDEOS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 200)),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one[0],
)


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


def slow_bm25(story: Story, word: str, half: int) -> list[float]:
    """BM25 of one word at every clip, in lines."""
    with_word = [sum(word in terms(text) for text in lines) for lines in story]
    cells = sum(1 for lines in story if lines)
    mean, scores = sum(map(len, story)) / max(1, cells), []
    around = [range(max(0, n - half), min(len(story), n + half + 1)) for n in range(len(story))]
    whole = [sum(with_word[i] for i in near) for near in around]
    holding = min(cells, sum(count > 0 for count in whole))
    for n, near in enumerate(around):
        held = whole[n] if half != 1 else (whole[n] + with_word[n]) / 2
        norm = K1 * (1 - B + B * (sum(len(story[i]) for i in near) / mean / (2 * half + 1)))
        weight = math.log(1 + (cells - holding + 0.5) / (holding + 0.5))
        scores.append(weight * held * (K1 + 1) / (held + norm))
    return scores


@given(STORIES, st.sampled_from(WORDS), st.sampled_from([0, 1, 3]))
def test_words_score_by_okapi_bm25(story: list[list[str]], word: str, half: int) -> None:
    hits = candidates_of(story).hits
    expected = slow_bm25(story, word, half) if word in hits.counts else [0.0] * len(story)
    assert hits.bm25([word], half)[: len(story)].tolist() == pytest.approx(expected)


@given(st.integers(1, 10_000), st.data())
def test_rarer_words_have_higher_document_frequencies(cells: int, data: st.DataObject) -> None:
    fewer, more = sorted(data.draw(st.tuples(st.integers(0, cells), st.integers(0, cells))))
    assert inverse_document_frequency(cells, fewer) >= inverse_document_frequency(cells, more) > 0


@given(STORIES, st.sets(st.sampled_from([*WORDS, "nowhere"])), st.data())
def test_coverage_grows(story: list[list[str]], words: set[str], data: st.DataObject) -> None:
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
    turns, rounds = Counter[tuple[str, int]](), []
    for one in order:
        rounds.append(turns[(one.video, one.frame.clip)])
        turns[(one.video, one.frame.clip)] += 1
    assert rounds == sorted(rounds)
    for one, following in itertools.pairwise(order):
        if rounds[order.index(one)] == rounds[order.index(following)]:
            assert one.score >= following.score


def question_of(
    text: str, options: tuple[str, ...], as_of: float | None = None
) -> PreparedQuestion:
    return prepare_question(text or "?", options, as_of)


@given(STORIES_OF_RANKING, QUESTIONS, OPTIONS, st.none() | st.floats(0, 400))
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


@given(STORIES_OF_RANKING, QUESTIONS, OPTIONS, st.integers(1, 5))
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


@given(STORIES_OF_RANKING, LINES)
def test_a_lines_own_words_find_it_or_one_with_all(story: list[list[str]], words: str) -> None:
    candidates = candidates_of([*story, [f"{words} zebra"]])
    question = question_of(f"{words} zebra", ())
    lines = best_lines(candidates, question, relevance_of(candidates, question), 5)
    (first, *_) = [row_of(candidates, item.line).id for item in lines]
    assert "zebra" in {row.id: row.text for _, row in candidates.lines.rows}[first]


@given(STORIES_OF_RANKING, QUESTIONS, OPTIONS)
def test_options_in_another_order_have_the_same_support(
    story: list[list[str]], text: str, options: tuple[str, ...]
) -> None:
    candidates = candidates_of(story)
    plain = relevance_of(candidates, question_of(text, options)).support
    other = relevance_of(candidates, question_of(text, options[::-1])).support
    assert np.allclose(plain, other[::-1], atol=1e-6)


def scopes_of(videos: list[tuple[str, int]]) -> list[Scope]:
    return [Scope(video=16 * video, last_clip=last) for video, last in videos]


@given(VIDEOS, st.integers(1, 80))
def test_a_sample_has_requested_number_of_clips(videos: list[tuple[str, int]], count: int) -> None:
    scopes = scopes_of(videos)
    sample = sampled_clips(scopes, count)
    assert sample == sampled_clips(scopes, count)
    assert len(sample) == min(count, sum(last + 1 for _, last in videos))
    assert all(0 <= clip <= scopes[number].last_clip for number, clip in sample)
    assert sample <= sampled_clips(scopes, count + 1)


@given(VIDEOS, st.integers(1, 80), st.integers(0, 100))
def test_clips_sampled_of_a_longer_view_are_sampled_of_the_shorter_one_too(
    videos: list[tuple[str, int]], count: int, more: int
) -> None:
    """Of the sampled clips those that were there before stay; so means move little by little."""
    before = sampled_clips(scopes_of(videos), count)
    longer = sampled_clips(scopes_of([(video, last + more) for video, last in videos]), count)
    assert {(number, clip) for number, clip in longer if clip <= videos[number][1]} <= before


@given(VIDEOS, st.integers(1, 80))
def test_order_of_videos_does_not_change_sample(videos: list[tuple[str, int]], count: int) -> None:
    def named(order: list[tuple[str, int]]) -> set[tuple[str, int]]:
        return {(order[number][0], clip) for number, clip in sampled_clips(scopes_of(order), count)}

    assert named(videos) == named(videos[::-1])


def test_an_empty_view_has_an_empty_sample() -> None:
    assert sampled_clips([], 9) == set()


def test_a_temporal_expression_gives_a_span_of_the_video() -> None:
    ((start, end),) = temporal_spans("What did Ann drink yesterday morning?", 3 * DAY + 20 * HOUR)
    assert 2 * DAY <= start < 2 * DAY + 12 * HOUR
    assert start < end <= 2 * DAY + 14 * HOUR
    assert start % STEP_S == end % STEP_S == 0


@pytest.mark.parametrize("text", ["", "Who sings?", "a red cup"])
def test_text_without_a_temporal_expression_gives_no_spans(text: str) -> None:
    assert temporal_spans(text, 3 * DAY) == []


@given(st.sampled_from(["yesterday", "this morning", "an hour ago", "at 11:00", "usually"]))
def test_spans_are_few_and_in_order(text: str) -> None:
    spans = temporal_spans(f"What happens {text}?", 9 * DAY)
    assert len(spans) <= MOST_SPANS
    assert spans == sorted(spans)
    assert all(0 <= start < end <= 9 * DAY for start, end in spans)
