"""Cells as a whole: cosines with the mean direction of lines, from cosines with the lines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval import cell_means as module
from retrieval.cell_means import magnitudes, wholes

SIZE = 24
layouts = st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=12)


def units(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, SIZE)) + 0.5
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def laid(layout: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    """The first line of each cell, and which are just after the one before."""
    first = np.cumsum([0, *(lines for lines, _ in layout)])[:-1]
    follows = np.array([after for _, after in layout])
    follows[0] = False
    return first, follows


def directions(vectors: np.ndarray, first: np.ndarray, follows: np.ndarray) -> np.ndarray:
    """The mean direction of a cell's lines and the last cell's, plainly."""
    sums = [rows.astype(np.float64).sum(axis=0) for rows in np.split(vectors, first[1:])]
    both = [own + (sums[i - 1] if follows[i] else 0) for i, own in enumerate(sums)]
    return np.array([one / np.linalg.norm(one) for one in both])


@settings(max_examples=60, deadline=None)
@given(layouts, st.integers(0, 1000))
def test_they_are_the_cosines_with_the_mean_direction(
    layout: list[tuple[int, bool]], seed: int
) -> None:
    first, follows = laid(layout)
    vectors, queries = units(sum(lines for lines, _ in layout), seed), units(2, seed + 1)
    long = magnitudes(vectors, first, follows)
    found = wholes(queries @ vectors.T, first, follows, long)
    assert found == pytest.approx(queries @ directions(vectors, first, follows).T, abs=1e-5)
    assert wholes(vectors @ queries[0], first, follows, long) == pytest.approx(found[0], abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(layouts, st.integers(1, 4), st.data())
def test_magnitudes_are_the_same_however_many_are_worked_out_together(
    layout: list[tuple[int, bool]], together: int, data: st.DataObject
) -> None:
    first, follows = laid(layout)
    vectors = units(sum(lines for lines, _ in layout), 3)
    start = data.draw(st.integers(0, len(first)))
    whole = magnitudes(vectors, first, follows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", together)
        assert np.array_equal(magnitudes(vectors, first, follows, start), whole[start:])


def test_a_cell_without_vectors_is_close_to_nothing() -> None:
    first, follows = np.array([0, 2]), np.array([False, True])
    vectors = np.zeros((3, SIZE), dtype=np.float32)
    long = magnitudes(vectors, first, follows)
    assert wholes(np.zeros(3, dtype=np.float32), first, follows, long).tolist() == [0.0, 0.0]


def test_of_no_cells_there_is_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert len(magnitudes(units(0, 1), nothing, nothing.astype(bool))) == 0
