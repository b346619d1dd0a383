"""Cells as a whole: the mean direction of a cell's lines and those of the cell just before.

What a line means hangs on what was going on; what comes after it has no say. A product with a sum
is the sum of the products: so of such a direction only its length before it was made 1 is kept,
and cosines with it come from cosines with lines.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from store.queries.search import Matrix

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_AT_ONCE = 4_096
"""Cells summed together: few enough for their sums to stay near the processor."""


def wholes(cosines: Floats, first: Ints, follows: Flags, magnitudes: Floats) -> Floats:
    """Cosines with N cells as a whole, (..., N), of those with their lines, (..., M).

    Args:
        cosines: of all lines, also of those that are superseded.
        first: the first line of each cell (N,).
        follows: the cells (N,) that are just after the one before them; never the first.
        magnitudes: see ``magnitudes``, (N,).
    """
    sums = np.add.reduceat(cosines, first, axis=-1)
    both = sums.copy()
    both[..., 1:] += np.where(follows[1:], sums[..., :-1], np.float32(0))
    return np.asarray(both / magnitudes, dtype=np.float32)


def magnitudes(vectors: Matrix, first: Ints, follows: Flags, start: int = 0) -> Floats:
    """How long the sum is of the vectors of a cell's lines and of those of the cell just before.

    Args:
        vectors: of all lines (M, D), of length 1 or 0.
        first: as in ``wholes``, of all cells.
        follows: as in ``wholes``, of all cells.
        start: cells before this one are left out.

    Returns:
        More than 0 each, (N - start,).
    """
    found = np.empty(len(first) - start, dtype=np.float32)
    ends = np.append(first, len(vectors))
    for at in range(start, len(first), _AT_ONCE):
        stop, before = min(at + _AT_ONCE, len(first)), max(at - 1, 0)
        own = slice(ends[before], ends[stop])
        sums = _sums(vectors[own], first[before:stop] - ends[before])
        both = sums[at - before :].copy()
        later = np.flatnonzero(follows[at:stop])
        both[later] += sums[later + at - before - 1]
        found[at - start : stop - start] = np.sqrt(np.vecdot(both, both))
    return np.maximum(found, np.float32(1e-9))


def _sums(vectors: Matrix, first: Ints) -> Matrix:
    """The sum of the rows of each cell, the first of which are given, one after the other."""
    total, ends = vectors[first], np.append(first[1:], len(vectors))
    longer = np.flatnonzero(ends - first > 1)
    for place in range(1, int((ends - first).max())):
        total[longer] += vectors[first[longer] + place]
        longer = longer[(ends - first)[longer] > place + 1]
    return np.asarray(total, dtype=np.float32)
