"""Precision and recall of cuts against known ones; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TOLERANCE_MS = 250
"""Tolerance of a cut's position: a little more than one sample at five per second."""


@dataclass(frozen=True)
class Cuts:
    """How many cuts there are, how many were detected, and how many of those are right."""

    true: int = 0
    told: int = 0
    right: int = 0

    def __add__(self, other: Cuts) -> Cuts:
        return Cuts(self.true + other.true, self.told + other.told, self.right + other.right)

    @property
    def precision(self) -> float:
        """Return the share of detected cuts that are right; 1 if none was detected."""
        return self.right / self.told if self.told else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the cuts that were detected; 1 if there are none."""
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def compare_cuts(true: Sequence[int], detected: Sequence[int], tolerance_ms: int) -> Cuts:
    """Pair each cut with one detected at most ``tolerance_ms`` away, as many as possible.

    Both in milliseconds, in any order. On a line, pairing the earliest that fit gives the most
    pairs.
    """
    unpaired, right = sorted(detected), 0
    for cut in sorted(true):
        while unpaired and unpaired[0] < cut - tolerance_ms:
            unpaired.pop(0)
        if unpaired and unpaired[0] <= cut + tolerance_ms:
            unpaired.pop(0)
            right += 1
    return Cuts(len(true), len(detected), right)
