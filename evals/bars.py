"""What an evaluation must reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """One figure and its limit: at least ``limit``, or at most where ``most`` is set."""

    name: str
    value: float
    limit: float
    most: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of the limit, which itself will do."""
        return self.value <= self.limit if self.most else self.value >= self.limit


def all_met(bars: Iterable[Bar]) -> bool:
    """Whether no bar is missed."""
    return all(bar.met for bar in bars)
