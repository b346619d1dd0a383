"""The largest of each run of numbers, for very many short runs, as cells have lines.

NumPy's ``reduceat`` takes a step of its own for each run. Here the largest of any 1, 2, 4, ...
neighbours are worked out for all numbers at once: two such stretches, which may share some, make
up a run of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
Ints = NDArray[np.int64]

_AT_ONCE = 4_096
"""Runs looked at together: few enough for their numbers to stay near the processor."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Runs side by side, and their numbers.

    ``levels`` tells of those that are made up of two stretches of 1, 2, 4, ... which they are, and
    where the two begin.
    """

    runs: slice
    numbers: slice
    levels: tuple[tuple[Ints, Ints, Ints], ...]

    def largest(self, numbers: Numbers, out: Numbers) -> None:
        around, own = numbers[self.numbers], out[self.runs]
        for level, (which, left, right) in enumerate(self.levels):
            if level:
                step = 1 << (level - 1)
                around = np.maximum(around[:-step], around[step:])
            if len(which):
                own[which] = np.maximum(around[left], around[right])


@dataclass(frozen=True, eq=False)
class NumberRuns:
    """N runs of M numbers, side by side; none is empty."""

    groups: tuple[_Group, ...]

    @classmethod
    def of(cls, first: Ints, count: int) -> NumberRuns:
        """``first`` (N,) is where each begins, ascending from 0 on; ``count`` is M."""
        ends = np.append(first[1:], count)
        starts = range(0, len(first), _AT_ONCE)
        return cls(tuple(_group(first, ends, slice(at, at + _AT_ONCE)) for at in starts))

    def largest(self, numbers: Numbers, out: Numbers) -> None:
        """The largest of each run of ``numbers`` (M,), into ``out`` (N,)."""
        for group in self.groups:
            group.largest(numbers, out)


def _group(first: Ints, ends: Ints, runs: slice) -> _Group:
    own = slice(int(first[runs][0]), int(ends[runs][-1]))
    left, right = first[runs] - own.start, ends[runs] - own.start
    steps = np.frexp(right - left)[1] - 1
    every = (np.flatnonzero(steps == level) for level in range(int(steps.max()) + 1))
    levels = ((which, left[which], right[which] - (1 << n)) for n, which in enumerate(every))
    return _Group(runs, own, tuple(levels))
