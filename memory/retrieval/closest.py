"""The largest of each run of numbers, for very many short runs, as cells have lines.

NumPy's ``reduceat`` takes a step of its own for each run. Here the largest of any 1, 2, 4, ...
neighbours are worked out for all numbers at once: two such stretches, which may share some, make
up a run of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of M numbers, side by side: where each begins (N,); none is empty.

    ``levels`` tells of those that are made up of two stretches of 1, 2, 4, ... which they are, and
    where the two begin.
    """

    levels: tuple[tuple[Ints, Ints, Ints], ...]

    @classmethod
    def of(cls, first: Ints, count: int) -> Runs:
        """``first`` (N,) is ascending, from 0 on; ``count`` is M."""
        lengths = np.diff(first, append=count)
        steps = np.frexp(lengths)[1] - 1
        return cls(
            tuple(
                (which, first[which], first[which] + lengths[which] - (1 << level))
                for level in range(int(steps.max(initial=-1)) + 1)
                for which in (np.flatnonzero(steps == level),)
            )
        )

    def largest(self, numbers: Floats, out: Floats) -> None:
        """The largest of each run of ``numbers`` (M,), into ``out`` (N,)."""
        around = numbers
        for level, (which, left, right) in enumerate(self.levels):
            if level:
                step = 1 << (level - 1)
                around = np.maximum(around[:-step], around[step:])
            if len(which):
                out[which] = np.maximum(around[left], around[right])
