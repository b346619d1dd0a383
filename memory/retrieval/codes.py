"""Vectors rounded to seven bits a number, for a first pass over many, and how far off that may be.

The product with a rounded vector differs from the true one by at most the length of what rounding
took away, since the other vector is of length 1 (Cauchy and Schwarz). So what a first pass puts
further behind than twice that is truly behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.packed import MOST, MOST_ASKED, PackedRows
from store.queries.search import Matrix

Floats = NDArray[np.float32]

BLOCK = 16_384
"""Rows packed together: few enough for their packing not to need much memory for a moment."""
TAIL = 2_048
"""Rows that came since are multiplied one by one until there are so many."""
_AT_ONCE = 4_096
_ARITHMETIC = 1e-5
"""More than what 32-bit sums of a few hundred numbers are off by."""


@dataclass(frozen=True, eq=False)
class AskedCodes:
    """A unit vector as two vectors of whole numbers, the second for what the first left.

    ``numbers`` (2, D) times ``steps`` (2,) is the vector, but for a rest of length ``lost``.
    """

    numbers: NDArray[np.int8]
    steps: Floats
    lost: float


def asked_codes(query: Floats) -> AskedCodes:
    """Round a unit vector (D,)."""
    rest, numbers, steps = query.astype(np.float64), [], []
    for _ in range(2):
        step = max(float(np.abs(rest).max()) / MOST_ASKED, 1e-12)
        numbers.append(np.rint(rest / step).astype(np.int8))
        steps.append(step)
        rest = rest - step * numbers[-1]
    lost = float(np.linalg.norm(rest))
    return AskedCodes(np.stack(numbers), np.array(steps, dtype=np.float32), lost)


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """N vectors (N, D) of length 1 or 0, rounded.

    The first are in ``packed``, those behind in ``tail`` (T, D), whole numbers too. ``steps`` (N,)
    is what 1 stands for in each row, ``lost`` (N,) the length of what rounding took away.
    """

    packed: tuple[PackedRows, ...]
    tail: Matrix
    steps: Floats
    lost: Floats

    def cosines(self, asked: AskedCodes, count: int) -> Floats:
        """Of a vector with the first ``count`` rows, nearly, shape (count,)."""
        found, at = np.empty(count, dtype=np.float32), 0
        for block in self.packed:
            if at < count:
                cut = min(count, at + len(block))
                products = block.products(asked.numbers)[:, : cut - at].astype(np.float32)
                found[at:cut] = _together(asked, products)
                at = cut
        if at < count:
            rest = self.tail[: count - at]
            products = np.stack([np.vecdot(rest, q) for q in asked.numbers.astype(np.float32)])
            found[at:] = _together(asked, products)
        found *= self.steps[:count]
        return found

    def off(self, asked: AskedCodes, count: int) -> float:
        """How far ``cosines`` of the first ``count`` rows are off at most."""
        return float(self.lost[:count].max(initial=0.0)) + 2 * asked.lost + _ARITHMETIC

    def followed_by(self, vectors: Matrix) -> RoundedRows:
        """These rows, then those of ``vectors`` (K, D)."""
        numbers, steps, lost = _rounded(vectors)
        tail = np.concatenate([self.tail, numbers.astype(np.float32)]) if len(self.steps) else None
        more: tuple[PackedRows, ...] = ()
        if tail is None or len(tail) >= TAIL:
            whole = numbers if tail is None else tail.astype(np.int8)
            more = tuple(PackedRows(whole[i : i + BLOCK]) for i in range(0, len(whole), BLOCK))
            tail = np.zeros((0, vectors.shape[1]), dtype=np.float32)
        return RoundedRows(
            self.packed + more,
            tail,
            np.concatenate([self.steps, steps]),
            np.concatenate([self.lost, lost]),
        )


def _together(asked: AskedCodes, products: Floats) -> Floats:
    """One sum of the products with both vectors of whole numbers, in the same order everywhere."""
    return np.asarray(products[0] * asked.steps[0] + products[1] * asked.steps[1])


def rounded(vectors: Matrix) -> RoundedRows:
    """Round vectors (N, D)."""
    blank = np.zeros(0, dtype=np.float32)
    return RoundedRows((), vectors[:0], blank, blank).followed_by(vectors)


def _rounded(vectors: Matrix) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Whole numbers (N, D), what 1 stands for in each row, and the length of what is lost."""
    numbers = np.empty(vectors.shape, dtype=np.int8)
    steps, lost = (np.empty(len(vectors), dtype=np.float32) for _ in range(2))
    for start in range(0, len(vectors), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        rows = vectors[here]
        step = np.maximum(np.abs(rows).max(axis=1), 1e-9) / np.float32(MOST)
        whole = np.rint(rows / step[:, None])
        numbers[here], steps[here] = whole, step
        lost[here] = np.linalg.norm(rows - whole * step[:, None], axis=1)
    return numbers, steps, lost
