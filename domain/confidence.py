"""Confidence: how likely an answer is right, calibrated on judged runs."""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum

from pydantic import model_validator

from domain.base import Frozen

HIGH = 0.7
"""The lowest confidence called high."""
MEDIUM = 0.4
"""The lowest confidence called medium."""
MAX_CONFIDENCE = 0.95
"""The highest confidence (SPEC section 2)."""


class ConfidenceLevel(StrEnum):
    """Confidence in words."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def level_of_confidence(confidence: float) -> ConfidenceLevel:
    """Return the level of a confidence in [0, 1]."""
    if confidence >= HIGH:
        return ConfidenceLevel.HIGH
    return ConfidenceLevel.MEDIUM if confidence >= MEDIUM else ConfidenceLevel.LOW


class Curve(Frozen):
    """A calibration curve: the share of right answers by raw confidence, linear between points.

    ``raw`` is strictly increasing, ``right`` never decreases; both are in [0, 1]. Without points
    the raw confidence is used unchanged.
    """

    raw: tuple[float, ...] = ()
    right: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _is_a_curve(self) -> Curve:
        if len(self.raw) != len(self.right):
            raise ValueError("a curve has as many shares as raw confidences")
        if any(not 0 <= value <= 1 for value in (*self.raw, *self.right)):
            raise ValueError("the points of a curve lie in [0, 1]")
        if list(self.raw) != sorted(set(self.raw)) or list(self.right) != sorted(self.right):
            raise ValueError("a curve rises")
        return self

    def at(self, raw: float) -> float:
        """Return the calibrated confidence for a raw one, at most 0.95."""
        if not self.raw:
            return min(MAX_CONFIDENCE, raw)
        after = bisect_right(self.raw, raw)
        if after in (0, len(self.raw)):
            return min(MAX_CONFIDENCE, self.right[max(0, after - 1)])
        (x0, x1), (y0, y1) = self.raw[after - 1 : after + 1], self.right[after - 1 : after + 1]
        return min(MAX_CONFIDENCE, y0 + (y1 - y0) * (raw - x0) / (x1 - x0))


class Calibration(Frozen):
    """The curves of a profile: one for questions with options, one for open questions."""

    options: Curve = Curve()
    open: Curve = Curve()
