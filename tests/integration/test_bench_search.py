"""The library that searching is measured on, and what is measured, at a size of no weight."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.grown import World, days, grow, unit, vectors_of, world
from benchmarks.search import (
    Bench,
    Known,
    Tools,
    looked_into,
    most_ms,
    nearest,
    parts,
    processor,
    recalled,
)
from store.database import Store
from tests.support.big_library import LINES
from tests.support.memory import WordVectors


@pytest.fixture(scope="module")
def made() -> World:
    return world(WordVectors())


def test_real_neighbours_are_near_and_others_are_not(made: World) -> None:
    chosen = np.repeat(np.arange(50), 20)
    vectors = made.near(chosen, seed=1)
    cosines = vectors @ made.vectors[:50].T
    own = cosines[np.arange(len(chosen)), chosen]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert own.mean() > cosines.mean() + 0.15


def test_a_library_has_as_many_memories_as_asked_for_in_days_at_most() -> None:
    videos = list(days(100_000))
    assert sum(film.clips for film in videos) * LINES == 100_000
    assert {film.clips for film in videos} == {2_500}
    assert len({film.id for film in videos}) == 5


def test_the_nearest_are_those_of_sorting_all() -> None:
    rows = unit(np.random.default_rng(0).standard_normal((200, 8)))
    assert set(nearest(rows, rows[3])) == set(np.argsort(-(rows @ rows[3]))[:10])


def test_every_part_of_a_library_is_searched_and_nothing_near_is_missed(
    store: Store, made: World
) -> None:
    bench = Bench(store, Tools(Known(WordVectors())), made, grow(store, made, 400), 400)
    searching = bench.searching()
    asked = parts(bench)
    assert [len(part.exact) for part in asked] == [400, 200, 208, 200]
    assert vectors_of(made, bench.films[-1]) == pytest.approx(asked[1].exact)
    for part in asked:
        assert recalled(bench, searching, part).reached
        assert looked_into(bench, searching, part).ratio == 1
        assert processor(bench, searching, part).ours.median > 0


def test_a_million_may_take_three_times_as_long() -> None:
    assert (most_ms(100_000), most_ms(1_000_000)) == (10, 30)
