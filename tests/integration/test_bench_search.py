"""The library that searching is measured on, and what is measured, at a size of no weight."""

from __future__ import annotations

from benchmarks.grown import days, grow, world
from benchmarks.search import Bench, filters, parts, recalled
from benchmarks.search_process import Known, Tools
from store.database import Store
from tests.support.memory import WordVectors


def test_nothing_near_is_missed_under_any_filter(store: Store) -> None:
    made = world(WordVectors())
    bench = Bench(store, Tools(Known.by(WordVectors())), made, grow(store, made, days(400)), 1.0)
    questions = parts(bench)[0].questions[:3]
    found = [line for one in filters(bench) for line in recalled(bench, one, questions)]
    assert len(found) == 10
    assert [line.what for line in found if not line.reached] == []
