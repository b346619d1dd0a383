"""Bars: figures that an evaluation must reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A figure and its limit: at least ``limit``, or at most, if ``most`` is set."""

    name: str
    value: float
    limit: float
    most: bool = False

    @property
    def met(self) -> bool:
        """Check whether the figure meets the limit, which is itself enough."""
        return self.value <= self.limit if self.most else self.value >= self.limit


def all_met(bars: Iterable[Bar]) -> bool:
    """Check that every bar is met."""
    return all(bar.met for bar in bars)
