"""The best of very many events is the best of a full pass, though few are looked into."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from domain.memories import MemoryView
from people.matching import normalise_rows
from retrieval import event_mode as searching
from retrieval import ranking
from retrieval import segment_index as weaving
from retrieval.closeness import Yardstick
from retrieval.coarse import CoarseField
from retrieval.event_mode import RankedSegments, rank_segments
from retrieval.line_vectors import LineVectors
from retrieval.query_context import QueryContext
from retrieval.ranking import PreparedQuestion, QuestionVectors, relevance
from retrieval.segment_index import woven
from retrieval.view_index import ViewIndex
from store.queries.search import Matrix
from tests.support.story import events_of, index_of, units, view_at

CLIPS, EACH, SIZE = 1_200, 2, 48


def near(query: Matrix, count: int, seed: int) -> Matrix:
    """Vectors of which many are about as close to a direction as the closest."""
    spread = np.random.default_rng(seed).uniform(0.9, 1.1, (count, 1))
    return normalise_rows(query + spread * units(count, SIZE, seed)).astype(np.float32)


def sought(seed: int) -> QueryContext:
    """A question that very many events are about."""
    query = units(1, SIZE, seed)[0]
    index = index_of([["dog"]] * CLIPS)
    index = replace(index, line_vectors=LineVectors(near(query, CLIPS, seed + 1)))
    seen = view_at(CLIPS, index)
    own = events_of(near(query, CLIPS // EACH, seed + 2), EACH)
    none = np.zeros((0, SIZE), dtype=np.float32)
    vectors, asked = QuestionVectors(query, none, none, query), PreparedQuestion("Zebra")
    field = relevance(seen, asked, vectors)

    def look_up(seen: ViewIndex) -> weaving.SegmentIndex:
        return woven(seen, [own])

    return QueryContext(
        query="a query",
        view=MemoryView(scopes=(seen.parts[0].scope,)),
        panorama=seen,
        asked=asked,
        vectors=vectors,
        field=field,
        look_up=look_up,
        yardstick=Yardstick(0.0),
    )


def both(
    seed: int, patch: pytest.MonkeyPatch
) -> tuple[RankedSegments, RankedSegments, CoarseField]:
    """Events by a first pass and by a full one."""
    found = []
    for many in (0, 10**9):
        patch.setattr(ranking, "MANY", many)
        patch.setattr(weaving, "MANY", many)
        asked = sought(seed)
        found.append((rank_segments(asked), asked.field))
    (quick, field), (full, _) = found
    assert isinstance(field, CoarseField)
    return quick, full, field


@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_the_best_event_is_that_of_a_full_pass(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, full, field = both(seed, monkeypatch)
    assert (full.margin, quick.margin > 0) == (0, True)
    assert quick.best() == full.best()
    best = full.best()
    assert quick.cosines[best] == pytest.approx(full.cosines[best], abs=1e-6)
    assert np.count_nonzero(field.sharp) < 0.8 * CLIPS


def test_what_seems_best_need_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing above would tell anything."""
    monkeypatch.setattr(searching, "_look_into", lambda *_: None)
    pairs = [both(seed, monkeypatch)[:2] for seed in range(0, 300, 10)]
    assert any(quick.best() != full.best() for quick, full in pairs)


@pytest.mark.parametrize("seed", range(0, 300, 30))
def test_scores_are_off_by_no_more_than_is_said_and_not_by_much_less(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_look_into", lambda *_: None)
    quick, full, field = both(seed, monkeypatch)
    field.sharpen(np.arange(CLIPS))
    exact = replace(quick, cosines=full.cosines, clips=quick.woven.best(field.cells))
    every = np.arange(len(quick.found))
    off = np.abs(quick.of_vectors(every) - exact.of_vectors(every)).max()
    assert quick.margin / 4 < off <= quick.margin
