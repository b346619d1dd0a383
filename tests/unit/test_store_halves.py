"""Vectors come from the database as halves, and are widened to the last bit."""

from __future__ import annotations

import numpy as np

from store.queries.search import widen_halves


def test_every_finite_half_is_the_same_number_in_32_bits() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits.view(np.float16)
    finite = np.isfinite(halves)
    found = widen_halves(bits[finite].astype(">u2").reshape(-1, 31))
    expected = halves[finite].astype(np.float32).reshape(-1, 31)
    assert found.dtype == np.float32
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_no_rows_stay_none() -> None:
    assert widen_halves(np.zeros((0, 384), dtype=">u2")).shape == (0, 384)
