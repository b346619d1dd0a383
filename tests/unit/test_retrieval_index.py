"""Indexes of memory: views are prefixes, grown indexes equal fresh ones, words count in windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.lexical import bm25, rarity, spread
from retrieval.line_vectors import LineVectors
from retrieval.terms import terms
from retrieval.time_grid import grid_of
from retrieval.video_index import grown
from tests.support.remembered import WordEmbedder
from tests.support.story import Story, index_of, view_at

STORY = [
    ["Ann bakes a cake", "Bob sings"],
    [],
    ["The cake burns", "Ann laughs", "Bob opens a window"],
    ["They eat the cake"],
]

words = st.sampled_from(["cake", "dog", "Ann", "runs", "red", "ball", "sings", "home"])
stories = st.lists(st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), max_size=3))


def test_clips_without_lines_are_no_cells() -> None:
    view = view_at(3, index_of(STORY))
    assert view.cell_count == 3
    assert view.line_count == 6
    assert list(view.keys) == [0, 2, 3]
    assert list(view.first) == [0, 2, 5]
    assert list(view.cell_of_line) == [0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize(("last_clip", "cells"), [(-1, 0), (0, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_a_view_is_a_prefix(last_clip: int, cells: int) -> None:
    assert view_at(last_clip, index_of(STORY)).cell_count == cells


def test_superseded_lines_are_hidden_from_their_clip_on() -> None:
    index = index_of(STORY, gone={1: 2})
    assert not view_at(1, index).hidden.any()
    assert list(np.flatnonzero(view_at(2, index).hidden)) == [0]
    query = WordEmbedder().embed(["Ann bakes a cake"])
    assert view_at(1, index).cosines(query)[0][0, 0] == pytest.approx(1)
    assert view_at(2, index).cosines(query)[0][0, 0] == -1


def test_several_videos_lie_side_by_side_without_touching() -> None:
    one, other = index_of(STORY, "a"), index_of([["A dog runs"], ["Home again"]], "b")
    view = view_at(9, one, other)
    assert view.cell_count == 5
    assert view.line(6)[0] == "b"
    assert view.line(6)[1].text == "A dog runs"
    assert view.cell(3)[0] == "b"
    assert view.keys[3] - view.keys[2] >= 1000
    posting = view.posting("dog")
    assert posting is not None
    assert list(posting.cells) == [3]
    (near,) = bm25(view, ["dog"], [10])
    assert (near[:3] == 0).all()
    assert (near[3:] > 0).all()


def test_a_video_embedded_otherwise_is_left_out() -> None:
    one, other = index_of(STORY, "a"), index_of(STORY, "b")
    narrow = replace(other, line_vectors=LineVectors(np.zeros((6, 3), dtype=np.float32)))
    assert [part.index.video for part in view_at(9, one, narrow).parts] == ["a"]


@settings(max_examples=40, deadline=None)
@given(stories, st.integers(0, 5))
def test_a_grown_index_equals_a_fresh_one(story: Story, cut: int) -> None:
    fresh = index_of(story)
    early, late = index_of(story[:cut]), index_of(story[cut:], first=min(cut, len(story)))
    both = grown(early, late, {}) if story[cut:] else early
    a, b = view_at(99, fresh), view_at(99, both)
    assert [a.line(i)[1].text for i in range(a.line_count)] == [
        b.line(i)[1].text for i in range(b.line_count)
    ]
    if not a.cell_count:
        return
    for query in ("cake", "dog red", "Ann sings"):
        vector = WordEmbedder().embed([query])
        assert all(map(np.array_equal, a.cosines(vector), b.cosines(vector)))
        one, other = (bm25(view, terms(query), [0, 1]) for view in (a, b))
        assert all(map(np.array_equal, one, other))
    assert set(a.actors.named) == set(b.actors.named)


def test_growing_marks_what_was_superseded_since() -> None:
    both = grown(index_of(STORY[:2]), index_of(STORY[2:], first=2), {1: 3})
    assert list(np.flatnonzero(view_at(3, both).hidden)) == [0]


def test_a_cell_is_read_with_the_one_just_before_it_only() -> None:
    view = view_at(9, index_of(STORY))
    embed = WordEmbedder().embed
    burns = view.cosines(embed(["They eat the cake"]))[1][0]
    alone = index_of([[], [], [], STORY[3]])
    assert view_at(9, alone).cosines(embed(["They eat the cake"]))[1][0, 0] == pytest.approx(1)
    assert burns[2] < 1
    gap = view.cosines(embed(["Ann bakes a cake"]))[1][0]
    # Clip 1 has no lines, so clip 2 has no cell just before it.
    vectors = embed(STORY[2]).sum(axis=0)
    own = float(embed(["Ann bakes a cake"])[0] @ (vectors / np.linalg.norm(vectors)))
    assert gap[1] == pytest.approx(own, abs=1e-6)


@pytest.mark.parametrize(
    ("half", "sums"),
    [
        (0, [1, 0, 2, 0, 5]),
        (1, [1, 1.5, 2, 1, 5]),
        (2, [3, 3, 3, 2, 5]),
        (9, [8, 8, 8, 8, 8]),
    ],
)
def test_counts_spread_over_neighbours_in_time(half: int, sums: list[float]) -> None:
    counts = np.array([1, 0, 2, 0, 5], dtype=np.float32)
    assert list(spread(counts, grid_of(np.array([0, 1, 2, 3, 7])), half)) == sums


def test_words_score_the_same_however_many_others_were_asked_about() -> None:
    view = view_at(9, index_of(STORY))
    first = bm25(view, ["cake", "dog"], [0, 1])
    kept = first.copy()
    # Whoever scored them may go on with what he was given.
    first -= first.mean()
    assert np.array_equal(bm25(view, ["cake", "dog"], [0, 1]), kept)
    for number in range(200):
        assert not bm25(view, [f"word{number}"], [0]).any()
    assert np.array_equal(bm25(view, ["cake", "dog"], [0, 1]), kept)
    assert np.array_equal(bm25(view, ["cake", "dog"], [1])[0], kept[1])
    assert len(view._of_terms) < 200


def test_rare_words_count_more_and_repetition_saturates() -> None:
    story = [["cake cake cake cake"], ["cake dog"], ["cake"], ["cake"]]
    view = view_at(9, index_of(story))
    ((dog,), (cake,)) = (bm25(view, terms(word), [0]) for word in ("dog", "cake"))
    assert dog[1] > cake[1]
    assert 0 < cake[2] < cake[0] < 4 * cake[2]
    assert list(bm25(view, terms("zebra"), [0])[0]) == [0, 0, 0, 0]
    assert rarity(100, 1) > rarity(100, 50) > rarity(100, 100) > 0
