"""Pairwise precision, recall and F1 of identities; pure.

Every pair of sightings counts: are both of one person, and were they joined? This measures both
splitting one person and merging several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pairs:
    """Pairs of one person that were joined, joined pairs, and pairs of one person."""

    right: int
    joined: int
    same: int

    @property
    def precision(self) -> float:
        """Return the share of the joined pairs that are of one person; 1 of nothing."""
        return self.right / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the pairs of one person that were joined; 1 of nothing."""
        return self.right / self.same if self.same else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def count_pairs(sightings: Iterable[tuple[Hashable, Hashable]]) -> Pairs:
    """Count the pairs of sightings, each given as (true person, assigned identity)."""
    all_sightings = list(sightings)
    return Pairs(
        right=_pairs(Counter(all_sightings)),
        joined=_pairs(Counter(assigned for _, assigned in all_sightings)),
        same=_pairs(Counter(true for true, _ in all_sightings)),
    )


def _pairs(sizes: Counter[Hashable] | Counter[tuple[Hashable, Hashable]]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())
