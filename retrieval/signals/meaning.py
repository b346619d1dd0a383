"""Meaning: cosines of a question with the closest line of each cell and with the cell as a whole.

A cell as a whole is the mean direction of its lines and those of the cell right before: what a line
means depends on what was going on, and what comes after it has no say.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from retrieval.line_set import Floats, LineSet, Matrix


def closest_lines(lines: LineSet, queries: Matrix) -> tuple[Floats, Floats]:
    """Return cosines of Q queries (Q, D) with every line (Q, M) and each cell's closest (Q, N)."""
    cosines = lines.cosines(queries)
    return cosines, np.asarray(lines.largest(cosines), dtype=np.float32)


def whole_cells(lines: LineSet, queries: Matrix) -> Floats:
    """Return cosines of Q queries (Q, D) with every cell as a whole, shape (Q, N)."""
    if not lines.line_count:
        return np.zeros((len(queries), 0), dtype=np.float32)
    own = csr_array(
        (np.ones(lines.line_count, dtype=np.float32), np.arange(lines.line_count), lines.bounds),
        shape=(lines.cell_count, lines.line_count),
    )
    sums = own @ lines.arrays.vectors
    both = sums.copy()
    later = np.flatnonzero(lines.follows)
    both[later] += sums[later - 1]
    lengths = np.maximum(np.linalg.norm(both, axis=1), 1e-9)
    return np.asarray((queries @ both.T) / lengths, dtype=np.float32)
