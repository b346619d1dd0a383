"""Cells on a grid of equal steps of time, where windows around all of them are summed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.index import Ints
from memory.retrieval.postings import Counts

FAR = 16
"""Windows reach less far. Cells further apart than that are put so far from each other."""


@dataclass(frozen=True, eq=False)
class Grid:
    """P places, at some of which are the N cells: ``places`` (N,), ascending, from 0 to P - 1."""

    places: Ints

    @cached_property
    def size(self) -> int:
        """P."""
        return int(self.places[-1]) + 1 if len(self.places) else 0

    @cached_property
    def _empty(self) -> Ints:
        return np.setdiff1d(np.arange(self.size), self.places, assume_unique=True)

    def of_cells(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is at the places of cells, (N,), of values at all places (P,)."""
        return values if self.size == len(self.places) else values[self.places]

    def holding(self, values: NDArray[Any]) -> int:
        """At how many cells there is anything but 0, of values at all places (P,)."""
        return int(np.count_nonzero(values) - np.count_nonzero(values[self._empty]))

    def windows(
        self, counts: NDArray[np.number], halves: Sequence[int], places: Ints | None = None
    ) -> Iterator[Counts]:
        """Sum whole numbers over ``half`` places to both sides of each place, (P,).

        Args:
            counts: what is at these places.
            halves: less than ``FAR`` each.
            places: those of all cells without them.
        """
        laid = np.zeros(self.size + 2 * FAR, dtype=np.int32)
        laid[FAR : FAR + self.size][self.places if places is None else places] = counts
        # Sums of 1, 2, 4, ... neighbouring places: any width is a few of them.
        doubled = [laid]
        for half in halves:
            width, start = 2 * half + 1, FAR - half
            while 1 << len(doubled) <= width:
                step = 1 << (len(doubled) - 1)
                doubled.append(doubled[-1][:-step] + doubled[-1][step:])
            pieces = []
            for power in range(width.bit_length()):
                if width >> power & 1:
                    pieces.append(doubled[power][start : start + self.size])
                    start += 1 << power
            yield sum(pieces[1:], start=pieces[0])


def grid_of(keys: Ints) -> Grid:
    """The grid of cells with these numbers (N,), ascending: times in steps, videos far apart."""
    return Grid(np.cumsum(np.minimum(np.diff(keys, prepend=keys[:1]), FAR)))
