"""Vectors of a table, fetched bit by bit, are those of the table."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval import line_vectors
from retrieval.line_vectors import WHOLE, LineVectors, fetch_together
from store.queries.search import Matrix

COUNT, SIZE = 400, 3
DICE = np.random.default_rng(5)
ROWS = DICE.standard_normal((COUNT, SIZE)).astype(np.float32)
IDS = DICE.permutation(10 * COUNT)[:COUNT]
NONE = np.zeros((0, SIZE), dtype=np.float32)
asked = st.lists(st.lists(st.integers(0, COUNT - 1), max_size=30), max_size=12)


class Table:
    """Gives rows in no order, and tells of which it was asked."""

    def __init__(self, rows: Matrix = ROWS) -> None:
        self.rows, self.asked, self._lock = rows, list[int](), Lock()

    def __call__(self, ids: Sequence[int]) -> tuple[np.ndarray, Matrix]:
        with self._lock:
            self.asked += ids
        own = np.flatnonzero(np.isin(IDS, ids))[::-1]
        return IDS[own], self.rows[own]


@given(asked)
def test_whatever_is_asked_for_is_what_the_table_has(asked: list[list[int]]) -> None:
    table = Table()
    vectors = LineVectors(NONE, IDS, table)
    assert (len(vectors), vectors.width) == (COUNT, SIZE)
    for lines in asked:
        assert vectors.of(np.array(lines, dtype=np.int64)).tolist() == ROWS[lines].tolist()
    seen = {line for lines in asked for line in lines}
    assert len(table.asked) == len(set(table.asked))
    assert vectors.held == (len(seen) * WHOLE > COUNT)
    assert len(table.asked) == (COUNT if vectors.held else len(seen))
    assert vectors.whole.tolist() == ROWS.tolist()
    assert sorted(table.asked) == sorted(IDS.tolist())


def test_there_is_room_for_what_was_fetched_and_little_more() -> None:
    room = []
    for few in (10, 20, 40):
        vectors = LineVectors(NONE, IDS, Table())
        for line in range(few):
            vectors.of(np.array([line]))
        room.append(len(vectors._here[0]))
    assert all(few <= own <= 2 * few for few, own in zip((10, 20, 40), room, strict=True))


def test_what_is_wanted_twice_at_once_is_there_once() -> None:
    table = Table()
    vectors = LineVectors(NONE, IDS, table)
    lines = np.array([3, 1, 3])
    fetch_together([(vectors, lines), (vectors, lines)])
    assert vectors.of(lines).tolist() == ROWS[lines].tolist()
    assert vectors.whole.shape == (COUNT, SIZE)
    assert vectors.held


def test_what_could_not_be_put_in_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = LineVectors(NONE, IDS, Table())

    def full(*_: object) -> Matrix:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(line_vectors, "_with_room", full)
        with pytest.raises(MemoryError):
            vectors.of(np.array([7]))
    assert vectors.of(np.array([7, 8])).tolist() == ROWS[[7, 8]].tolist()
    assert np.array_equal(vectors.whole, ROWS)


def test_threads_find_what_others_fetch_meanwhile() -> None:
    for _ in range(20):
        vectors = LineVectors(NONE, IDS, Table())

        def look(seed: int, vectors: LineVectors = vectors) -> bool:
            dice = np.random.default_rng(seed)
            every = (dice.integers(0, COUNT, 7) for _ in range(10))
            return all(np.array_equal(vectors.of(own), ROWS[own]) for own in every)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(look, range(8)))


def test_a_table_without_rows_has_nothing() -> None:
    vectors = LineVectors(NONE, IDS[:0], Table())
    assert vectors.whole.shape == vectors.of(IDS[:0]).shape == (0, SIZE)
