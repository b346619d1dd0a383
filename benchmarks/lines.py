"""The result of a benchmark: a line for each measurement, beside its reference."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RUNS = 5


@dataclass(frozen=True)
class Taken:
    """What runs of one way took, in the order they were made; ``unit`` of each number."""

    values: tuple[float, ...]
    unit: str = "ms"

    @property
    def median(self) -> float:
        """The middle of all runs."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        if len(self.values) < 2 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / 2 / self.median


@dataclass(frozen=True)
class Line:
    """One measurement beside its reference.

    ``bar`` is what ``ratio`` must reach: at least, where ``more`` is better, else at most. A line
    without a bar is reported and not judged. ``size`` is what cost may grow with.
    """

    what: str
    ours: Taken
    reference: Taken
    against: str
    ratio: float
    bar: float | None = None
    more: bool = True
    size: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the bar is met; None without one."""
        if self.bar is None:
            return None
        return self.ratio >= self.bar if self.more else self.ratio <= self.bar


def faster(
    what: str, ours: Taken, reference: Taken, against: str, bar: float | None = None
) -> Line:
    """Return how many times as fast as the reference."""
    return Line(what, ours, reference, against, reference.median / ours.median, bar)


def costs(
    what: str,
    ours: Taken,
    reference: Taken,
    against: str,
    bar: float | None = None,
    size: float | None = None,
) -> Line:
    """Return how many times what the reference takes."""
    ratio = ours.median / reference.median if reference.median else math.inf
    return Line(what, ours, reference, against, ratio, bar, more=False, size=size)


def in_turn(*ways: Callable[[], object], runs: int = RUNS) -> tuple[Taken, ...]:
    """Return milliseconds of each way, run in turns, so that whatever else runs weighs on all."""
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(runs):
        for way, times in zip(ways, taken, strict=True):
            times.append(milliseconds(way))
    return tuple(Taken(tuple(times)) for times in taken)


def milliseconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def exponent(lines: Sequence[Line]) -> float | None:
    """By which power of the size our cost grows: a fit of logarithms, of three sizes or more."""
    points = [(math.log(one.size), math.log(one.ours.median)) for one in lines if one.size]
    if len({size for size, _ in points}) < 3:
        return None
    sizes, times = zip(*points, strict=True)
    return statistics.linear_regression(sizes, times).slope
