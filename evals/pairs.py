"""How well things are told apart and known again: precision, recall and F1 over pairs; pure.

Every pair of sightings is looked at: are the two of one person, and were they taken for one? So it
counts both that one person is split into several, and that several are taken for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pairs:
    """Pairs that are of one person and were joined, that were joined, that are of one person."""

    right: int
    joined: int
    same: int

    @property
    def precision(self) -> float:
        """Share of the joined pairs that are of one person; 1 where nothing was joined."""
        return self.right / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        """Share of the pairs of one person that were joined; 1 where there are none."""
        return self.right / self.same if self.same else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def count_pairs(sightings: Iterable[tuple[Hashable, Hashable]]) -> Pairs:
    """The pairs of some sightings, each given as (who it is, who it was taken for)."""
    every = list(sightings)
    return Pairs(
        right=_pairs(Counter(every)),
        joined=_pairs(Counter(told for _, told in every)),
        same=_pairs(Counter(true for true, _ in every)),
    )


def _pairs(sizes: Counter[Hashable] | Counter[tuple[Hashable, Hashable]]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())
