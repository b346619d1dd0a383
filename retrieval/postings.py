"""Which cells hold which search term: all terms one after the other, in a few arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Posting:
    """The cells that hold a term, ascending, and how often each does. Shapes (K,)."""

    cells: Ints
    counts: Counts


@dataclass(frozen=True, eq=False)
class Postings:
    """Of T terms by number; ``starts`` (T + 1,) tell where each begins in ``cells`` and ``counts``.

    Shapes (K,): the cells of each term ascend.
    """

    numbers: dict[str, int]
    starts: Ints
    cells: Ints
    counts: Counts

    def get(self, term: str) -> Posting | None:
        """Where a term is."""
        number = self.numbers.get(term)
        if number is None:
            return None
        here = slice(self.starts[number], self.starts[number + 1])
        return Posting(self.cells[here], self.counts[here])

    def followed_by(self, more: Postings, cells: int) -> Postings:
        """These, of ``cells`` cells, then those of the next."""
        numbers = dict(self.numbers)
        renamed = [numbers.setdefault(term, len(numbers)) for term in more.numbers]
        late = np.array(renamed, dtype=np.int64)[more.terms]
        terms = np.concatenate([self.terms, late])
        order = np.argsort(terms, kind="stable")
        return Postings(
            numbers,
            _starts(terms, len(numbers)),
            np.concatenate([self.cells, more.cells + cells])[order],
            np.concatenate([self.counts, more.counts])[order],
        )

    @property
    def terms(self) -> Ints:
        """The number of the term that each cell holds, ascending, (K,)."""
        return np.repeat(np.arange(len(self.numbers)), np.diff(self.starts))


def _starts(terms: Ints, count: int) -> Ints:
    """Where each of so many terms begins among ``terms`` (K,), once these are in order."""
    return np.cumsum(np.append(0, np.bincount(terms, minlength=count)))


def postings_of(cells: Sequence[Sequence[str]]) -> Postings:
    """Where the terms of N cells are."""
    numbers: dict[str, int] = {}
    flat = [numbers.setdefault(term, len(numbers)) for own in cells for term in own]
    count = max(1, len(cells))
    at = np.repeat(np.arange(len(cells)), np.fromiter(map(len, cells), np.int64, len(cells)))
    places, counts = np.unique(np.array(flat, dtype=np.int64) * count + at, return_counts=True)
    starts = _starts(places // count, len(numbers))
    return Postings(numbers, starts, places % count, counts.astype(np.int32))
