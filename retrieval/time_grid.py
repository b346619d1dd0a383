"""Cells on a grid of equal steps of time, where windows around all of them are summed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval.postings import Counts
from retrieval.video_index import Ints

LONG = 64
"""Where stretches of places without a gap are so long on average, each is copied as it is."""
FAR = 16
"""Windows reach less far. Cells further apart than that are put so far from each other."""


@dataclass(frozen=True, eq=False)
class TimeGrid:
    """P places, at some of which are the N cells: ``places`` (N,), ascending, from 0 to P - 1.

    Cells of a video that was watched in shorter clips than the steps of the grid share a place.
    """

    places: Ints

    @cached_property
    def size(self) -> int:
        """P."""
        return int(self.places[-1]) + 1 if len(self.places) else 0

    @cached_property
    def _empty(self) -> Ints:
        return np.setdiff1d(np.arange(self.size), self.places, assume_unique=True)

    @cached_property
    def _cuts(self) -> Ints:
        """The cells that are not one place after the one before, but the first."""
        return np.flatnonzero(np.diff(self.places) != 1) + 1

    @cached_property
    def _shared(self) -> bool:
        """Whether any two cells are at one place."""
        return bool((np.diff(self.places) == 0).any())

    @cached_property
    def _stretches(self) -> list[slice]:
        """Places of cells side by side."""
        firsts = self.places[np.append(0, self._cuts)]
        lasts = self.places[np.append(self._cuts, 0) - 1]
        pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return [slice(first, last + 1) for first, last in pairs]

    def of_cells(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is at the places of cells, (N,), of values at all places (P,)."""
        if not len(self._cuts):
            return values
        if len(self._cuts) * LONG > self.size:
            return values[self.places]
        return np.concatenate([values[stretch] for stretch in self._stretches])

    def holding(self, values: NDArray[Any]) -> int:
        """At how many cells there is anything but 0, of values at all places (P,)."""
        if self._shared:
            return int(np.count_nonzero(self.of_cells(values)))
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
        own, at = laid[FAR : FAR + self.size], self.places if places is None else places
        if self._shared:
            np.add.at(own, at, counts.astype(np.int32))
        else:
            own[at] = counts
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


def grid_of(keys: Ints) -> TimeGrid:
    """The grid of cells with these numbers (N,), ascending: times in steps, videos far apart."""
    return TimeGrid(np.cumsum(np.minimum(np.diff(keys, prepend=keys[:1]), FAR)))
