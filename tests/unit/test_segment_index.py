"""Segments of several videos: a first pass over very many is as close as it says."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval import segment_index as weaving
from retrieval.segment_index import woven
from retrieval.view_index import ViewIndex
from store.queries.search import Matrix
from tests.support.story import events_of, index_of, units, view_at

SIZE = 48
VIDEOS = 4


def some(count: int, size: int = SIZE) -> Matrix:
    return units(count, size, seed=count)


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weaving, "MANY", 0)


def view() -> ViewIndex:
    return view_at(99, *(index_of([["A dog runs"]], f"video {n}") for n in range(VIDEOS)))


def test_cosines_of_segments_are_off_by_no_more_than_they_say() -> None:
    # A video without events yet has vectors of no size at all.
    vectors = [
        some(40),
        np.zeros((0, 0), np.float32),
        some(300),
        some(7),
    ]
    found = woven(view(), [events_of(own, video=f"video {n}") for n, own in enumerate(vectors)])
    query = some(1)[0]
    exact = np.concatenate([own @ query for own in vectors if len(own)])
    cosines, off = found.cosines(query)
    assert 0 < off < 0.2
    assert 1e-4 < np.abs(cosines - exact).max() <= off
    places = np.array([3, 41, 345])
    assert found.exact_cosines(places, query) == pytest.approx(exact[places], abs=1e-6)


def test_segments_that_another_model_embedded_have_no_cosines() -> None:
    vectors = [
        some(40),
        some(30, SIZE // 2),
        some(20),
        some(7),
    ]
    found = woven(view(), [events_of(own, video=f"video {n}") for n, own in enumerate(vectors)])
    query = some(1)[0]
    cosines, off = found.cosines(query)
    assert off == 0
    assert cosines[:40] == pytest.approx(vectors[0] @ query, abs=1e-6)
    assert not cosines[40:70].any()
    assert cosines[70:90] == pytest.approx(vectors[2] @ query, abs=1e-6)


def test_words_tell_the_same_however_many_were_asked_about_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weaving, "OF_WORDS", 2)
    found = woven(view(), [events_of(some(3), video=f"video {n}") for n in range(VIDEOS)])
    first = found.words(["tea", "zebra"]).copy()
    assert 0 < first[0] < 0.5
    assert len(set(first.tolist())) == 1
    for word in ("walk", "dog", "tea", "cake"):
        found.words([word])
    assert found.words(["tea", "zebra"]).tolist() == first.tolist()
    assert found.words(["tea"]).tolist() == [1.0] * len(found.found)


def test_the_best_clip_of_a_segment_tells_and_the_lowest_score_where_none_is_in_view() -> None:
    seen = view_at(99, *(index_of([["A dog runs"]] * 3, f"video {n}") for n in range(2)))
    found = woven(seen, [events_of(some(4), video=f"video {n}") for n in range(2)])
    scores = np.array([3.0, 9.0, 2.0, 5.0, 1.0, 7.0])
    assert found.best(scores).tolist() == [3.0, 9.0, 2.0, 1.0, 5.0, 1.0, 7.0, 1.0]


def test_nothing_at_all_has_no_cosines() -> None:
    cosines, off = woven(ViewIndex(()), []).cosines(some(1)[0])
    assert (cosines.tolist(), off) == ([], 0)
