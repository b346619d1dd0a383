"""Vectors travel to Postgres as pgvector's own bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from store.bulk_insert import pack_halfvec, unpack_halfvecs


@given(arrays(np.float32, st.integers(1, 64), elements=st.floats(-4, 4, width=16)))
def test_what_is_packed_comes_back(vector: np.ndarray) -> None:
    (back,) = unpack_halfvecs([pack_halfvec(vector)])
    assert back.dtype == np.float32
    assert np.array_equal(back, vector)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_numbers_are_rounded_to_the_nearest_half(vector: list[float]) -> None:
    (back,) = unpack_halfvecs([pack_halfvec(vector)])
    assert np.array_equal(back, np.asarray(vector, np.float32).astype(np.float16))


def test_the_bytes_are_size_blank_and_big_endian_halves() -> None:
    assert pack_halfvec([1.0, -2.0]) == b"\x00\x02\x00\x00\x3c\x00\xc0\x00"


def test_no_vector_is_null_and_reads_as_an_empty_one() -> None:
    assert pack_halfvec(None) is None
    assert unpack_halfvecs([None])[0].shape == (0,)
