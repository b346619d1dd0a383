"""The largest number of each run, beside NumPy's own way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval import segment_max
from retrieval.segment_max import NumberRuns


@pytest.fixture(autouse=True, scope="module")
def few_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_max, "_AT_ONCE", 16)
        yield


@given(st.lists(st.integers(1, 70), min_size=1, max_size=40), st.integers(0, 1_000))
def test_it_is_what_numpy_finds_run_by_run(lengths: list[int], seed: int) -> None:
    numbers = np.random.default_rng(seed).standard_normal(sum(lengths)).astype(np.float32)
    first = np.cumsum([0, *lengths[:-1]])
    found = np.empty(len(lengths), dtype=np.float32)
    NumberRuns.of(first, len(numbers)).largest(numbers, found)
    assert found.tolist() == np.maximum.reduceat(numbers, first).tolist()


def test_without_runs_there_is_nothing_to_find() -> None:
    none = np.zeros(0, dtype=np.int64)
    NumberRuns.of(none, 0).largest(np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.float32))
