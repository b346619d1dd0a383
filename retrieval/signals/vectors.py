"""The vector signal: cosines of queries with the closest line of each cell, and with the cell.

The vector of a cell is the mean direction of its lines and those of the cell before it, for
context; later cells do not count (online rule).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from retrieval.line_set import Floats, LineSet, Matrix, dot_products


def line_cosines(lines: LineSet, queries: Matrix) -> tuple[Floats, Floats]:
    """Return cosines of Q queries (Q, D) with every line (Q, M) and each cell's closest (Q, N)."""
    cosines = lines.cosines(queries)
    return cosines, np.asarray(lines.largest(cosines), dtype=np.float32)


def cell_cosines(lines: LineSet, queries: Matrix) -> Floats:
    """Return cosines of Q queries (Q, D) with the vector of every cell, shape (Q, N)."""
    if not lines.line_count:
        return np.zeros((len(queries), 0), dtype=np.float32)
    membership = csr_array(
        (np.ones(lines.line_count, dtype=np.float32), np.arange(lines.line_count), lines.bounds),
        shape=(lines.cell_count, lines.line_count),
    )
    sums = membership @ lines.arrays.vectors
    windows = sums.copy()
    later = np.flatnonzero(lines.follows)
    windows[later] += sums[later - 1]
    lengths = np.maximum(np.linalg.norm(windows, axis=1), 1e-9)
    cosines = np.asarray(dot_products(queries, windows) / lengths, dtype=np.float32)
    return lines.on_one_scale(cosines, lines.first)
