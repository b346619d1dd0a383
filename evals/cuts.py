"""How well cuts are found, beside exactly known ones; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TOLERANCE_MS = 250
"""A cut is found within this of where it is: a little more than one sample, five a second."""


@dataclass(frozen=True)
class Cuts:
    """How many cuts there are, how many were told, and how many of those are right."""

    true: int = 0
    told: int = 0
    right: int = 0

    def __add__(self, other: Cuts) -> Cuts:
        return Cuts(self.true + other.true, self.told + other.told, self.right + other.right)

    @property
    def precision(self) -> float:
        """Share of those told that are right; 1 where none was told."""
        return self.right / self.told if self.told else 1.0

    @property
    def recall(self) -> float:
        """Share of the cuts that were told; 1 where there are none."""
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def compare_cuts(true: Sequence[int], told: Sequence[int], tolerance_ms: int) -> Cuts:
    """Pair each cut with one that was told at most ``tolerance_ms`` away, as many as can be.

    Both in milliseconds, in any order. On a line the earliest pairs that fit are the most pairs.
    """
    waiting, right = sorted(told), 0
    for cut in sorted(true):
        while waiting and waiting[0] < cut - tolerance_ms:
            waiting.pop(0)
        if waiting and waiting[0] <= cut + tolerance_ms:
            waiting.pop(0)
            right += 1
    return Cuts(len(true), len(told), right)
