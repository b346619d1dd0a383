"""Vectors rounded to four bits a number, for a first pass over many, and how far off that may be.

The product with a rounded vector differs from the true one by the product with what rounding took
away. That points anywhere: of a vector of length 1 it has about as much as any direction has of
any other in so many dimensions, one part in the root of their number. ``SIGMAS`` times that is
further off than one product in ten thousand is; so what a first pass puts further behind than that
is truly behind, nearly always.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.packed_rows import LAST, TOGETHER, ZERO, Codes, PackedRows, Pairs, paired, unpaired
from store.queries.search import Matrix

Floats = NDArray[np.float32]

BLOCK = 32_768
"""Rows packed together: few enough for their packing not to need much memory for a moment."""
TAIL = 2_048
"""Rows that came since are packed anew each time until there are so many."""
SIGMAS = 4.0
_AT_ONCE = 4_096
_ARITHMETIC = 2e-3
"""More than what rounding the question itself to eight bits is off by."""


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """N vectors (N, D) of length 1 or 0, rounded.

    The first are in ``packed``, those behind in ``tail`` (T, D), as codes. ``steps`` (N,) is what 1
    stands for in each row, ``lost`` (N,) the length of what rounding took away.
    """

    packed: tuple[PackedRows, ...]
    tail: Codes
    steps: Floats
    lost: Floats

    @cached_property
    def _blocks(self) -> tuple[PackedRows, ...]:
        if not len(self.tail):
            return self.packed
        first = len(self.steps) - len(self.tail)
        return *self.packed, *_packed(paired(self.tail), self.steps[first:], self.tail.shape[1])

    def cosines(self, query: Floats, out: Floats) -> None:
        """Of a vector (D,) with the first rows, nearly, as many as ``out`` (K,) has room for."""
        at = 0
        for block in self._blocks:
            if at < len(out):
                cut = min(len(out), at + len(block))
                out[at:cut] = block.products(query)[: cut - at]
                at = cut

    def off(self, count: int) -> float:
        """How far ``cosines`` of the first ``count`` rows are off at most, nearly always."""
        return off_by(self.lost[:count], self.tail.shape[1])

    def followed_by(self, vectors: Matrix) -> RoundedRows:
        """These rows, then those of ``vectors`` (K, D)."""
        codes, steps, lost = _rounded(vectors)
        codes = np.concatenate([self.tail, codes])
        steps, lost = np.concatenate([self.steps, steps]), np.concatenate([self.lost, lost])
        first = len(steps) - len(codes)
        whole = _whole(len(codes))
        more = _packed(paired(codes[:whole]), steps[first:], codes.shape[1])
        return RoundedRows(self.packed + more, codes[whole:], steps, lost)


def off_by(lost: Floats, size: int) -> float:
    """How far cosines of rows with ``size`` numbers are off at most, nearly always."""
    return SIGMAS * float(lost.max(initial=0.0)) / float(np.sqrt(size)) + _ARITHMETIC


def _whole(count: int) -> int:
    """How many of so many rows are packed.

    A row lies at the same place among those worked on at once, however rows came together.
    """
    return count // TOGETHER * TOGETHER if count >= TAIL else 0


def _packed(pairs: Pairs, steps: Floats, size: int) -> tuple[PackedRows, ...]:
    cuts = (slice(start, min(start + BLOCK, len(pairs))) for start in range(0, len(pairs), BLOCK))
    return tuple(PackedRows(pairs[cut], steps[cut], size) for cut in cuts)


class Coded(NamedTuple):
    """Rounded rows as they are kept: ``paired`` codes, steps (N,), and what is lost (N,)."""

    pairs: Pairs
    steps: Floats
    lost: Floats


def coded(vectors: Matrix) -> Coded:
    """Round vectors (N, D), to be kept."""
    codes, steps, lost = _rounded(vectors)
    return Coded(paired(codes), steps, lost)


def of_coded(kept: Coded, size: int) -> RoundedRows:
    """What ``rounded`` makes of the same vectors, of ``size`` numbers."""
    whole = _whole(len(kept.pairs))
    packed = _packed(kept.pairs[:whole], kept.steps, size)
    return RoundedRows(packed, unpaired(kept.pairs[whole:], size), kept.steps, kept.lost)


def rounded(vectors: Matrix) -> RoundedRows:
    """Round vectors (N, D)."""
    blank = np.zeros(0, dtype=np.float32)
    none = np.zeros((0, vectors.shape[1]), dtype=np.uint8)
    return RoundedRows((), none, blank, blank).followed_by(vectors)


def _rounded(vectors: Matrix) -> tuple[Codes, Floats, Floats]:
    """Codes (N, D), what 1 stands for in each row, and the length of what is lost."""
    codes = np.empty(vectors.shape, dtype=np.uint8)
    steps, lost = (np.empty(len(vectors), dtype=np.float32) for _ in range(2))
    for start in range(0, len(vectors), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        rows = vectors[here]
        step = np.maximum(np.abs(rows).max(axis=1), 1e-9) / np.float32(LAST / 2)
        whole = np.rint(rows / step[:, None])
        np.minimum(whole, LAST - ZERO, out=whole)
        codes[here], steps[here] = whole + ZERO, step
        whole *= step[:, None]
        whole -= rows
        lost[here] = np.sqrt(np.vecdot(whole, whole))
    return codes, steps, lost
