"""The library that searching is measured on, and what is measured, at a size of no weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.grown import World, days, grow, unit, vectors_of, world
from benchmarks.search import (
    Bench,
    filters,
    indexed,
    most_ms,
    nearest,
    of_processes,
    parts,
    recalled,
    while_written,
    with_options,
)
from benchmarks.search_process import WATCHED, Known, Tools, asked_afresh, hand_over
from domain.asking import Mode
from store.database import Store
from store.queries import candidates, search
from store.queries.clips import memory_view
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
    assert sum(recording.clips for recording in videos) * LINES == 100_000
    assert {recording.clips for recording in videos} == {2_500}
    assert len({recording.id for recording in videos}) == 5


def test_the_nearest_are_those_of_sorting_all() -> None:
    rows = unit(np.random.default_rng(0).standard_normal((200, 8)))
    assert set(nearest(rows, rows[3])) == set(np.argsort(-(rows @ rows[3]))[:10])


@pytest.fixture
def bench(store: Store, made: World) -> Bench:
    return Bench(store, Tools(Known.by(WordVectors())), made, grow(store, made, days(400)), 1.0)


@pytest.mark.full
def test_every_part_of_a_library_is_searched(bench: Bench) -> None:
    asked = parts(bench)
    assert [len(part.exact) for part in asked] == [400, 200, 192, 200]
    assert vectors_of(bench.world, bench.recordings[-1]) == pytest.approx(asked[1].exact)
    assert with_options(bench, bench.searching(), asked[0]).ours.median > 0


def test_nothing_near_is_missed_under_any_filter(bench: Bench) -> None:
    questions = parts(bench)[0].questions[:3]
    found = [line for one in filters(bench) for line in recalled(bench, one, questions)]
    assert len(found) == 10
    assert [line.what for line in found if not line.reached] == []


def test_recall_is_measured_through_the_index_where_there_is_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WIDE", 100)
    assert [line.ours.median > 0 for line in indexed(bench)] == [True, True]
    monkeypatch.setattr(candidates, "_LINES_BY_INDEX", "SELECT 1, '', 0 LIMIT 0")
    whole = filters(bench)[0]
    lines, clips = recalled(bench, whole, parts(bench)[0].questions[:1])
    assert lines.ours.median == 0
    assert clips.reached


@pytest.mark.full
def test_processes_ask_and_write_beside(bench: Bench, tmp_path: Path) -> None:
    asked, searching = parts(bench)[0], bench.searching()
    for one in asked.questions:
        searching.search(asked.view, Mode.EVENT, one)
    hand_over(tmp_path, asked.view, asked.questions, bench.tools.text)
    first, memory = of_processes(bench, [asked_afresh(bench.store, tmp_path)])
    assert first.ours.median > 0
    assert memory.ours.median > 50
    assert while_written(bench, searching, asked, tmp_path).ours.median > 0
    with bench.store.begin() as session:
        assert memory_view(session, [WATCHED]).scopes[0].last_clip >= 0


def test_more_lines_in_view_may_take_longer() -> None:
    sizes = (10_000, 20_000, 100_000, 1_000_000)
    assert [most_ms(size) for size in sizes] == [25, 90, 90, 200]
