"""How relevant every cell of a view is: what ranking makes, and the modes choose from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.video_index import Floats, Ints

Scores = NDArray[np.float64]

_AT_ONCE = 1 << 15
"""Values looked at together: few enough to stay near the processor."""
NOISE = 1e-5
"""Values that differ by less are equal: the last bits of a matrix product say nothing."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """How relevant every cell is, in standard deviations added up.

    ``question`` (N,) is relevance to the question alone, ``options`` (O, N) with what each option
    says; ``support`` (O, N) is what the choice among options rests on. ``lines`` (1 + 2 O or 1, M)
    are the cosines of every line with the question, then the statements, then the options (the
    latter two not where the options are times); ``near`` are those of each cell's closest. ``off``
    is how far the score of a cell that was not sharpened is off at most, nearly always; 0: all are
    exact. ``line_support`` (O, M) is what every line says for each option, where a cell is as good
    as its best line (``retrieval.heuristics.captioned_options``).
    """

    question: Scores
    options: Scores
    support: Scores
    lines: Floats
    near: Floats
    off: float = 0.0
    line_support: Scores | None = None
    _levels: dict[tuple[int, int], SignalScale] = field(default_factory=dict)

    def standing(self, rows: slice, lines: Ints) -> Scores:
        """Cosines of some lines in standard deviations from the mean of all, rows together."""
        start, stop, _ = rows.indices(len(self.lines))
        if (start, stop) not in self._levels:
            self._levels[start, stop] = level(self.lines[start:stop])
        return self._levels[start, stop].of(self.lines[start:stop, lines])

    def exact(self, cells: Ints) -> NDArray[np.bool_]:
        """Which of these cells have exact scores, (K,)."""
        return np.ones(len(cells), dtype=np.bool_)

    def sharpen(self, cells: Ints) -> bool:  # noqa: ARG002
        """Make the scores of these cells, and the cosines of their lines, exact.

        Returns:
            Whether any was not before.
        """
        return False

    def sharpen_best(self) -> None:
        """Make the scores of the best cells and the cosines of the nearest lines exact."""

    def of_options(self, rows: Sequence[int]) -> Relevance:
        """The same, of some of the options; scores stay comparable with those of the others."""
        count = len(self.options)
        if not count or list(rows) == list(range(count)):
            return self
        own = list(rows)
        told = len(self.lines) > 1
        kept = [0, *(1 + i for i in own), *(1 + count + i for i in own)] if told else [0]
        few = replace(
            self,
            options=self.options[own],
            support=self.support[own],
            lines=self.lines[kept],
            near=self.near[kept],
            line_support=None if self.line_support is None else self.line_support[own],
            _levels={},
        )
        if told:
            few._levels[1, 1 + len(own)] = level(self.lines[1 : 1 + count])
            few._levels[1 + len(own), 1 + 2 * len(own)] = level(self.lines[1 + count :])
        return few

    @property
    def cells(self) -> Scores:
        """The relevance of every cell, by the option it fits best where there are any, (N,)."""
        return np.asarray(self.options.max(axis=0)) if len(self.options) else self.question


@dataclass(frozen=True)
class SignalScale:
    """A signal's mean over the view, and what one of it adds to a score."""

    mean: float
    weight: float

    def of(self, values: NDArray[np.floating]) -> Scores:
        """What values add to scores."""
        return np.asarray((values.astype(np.float64) - self.mean) * self.weight)


def level(values: NDArray[np.floating], weight: float = 1.0) -> SignalScale:
    """Of a signal that counts so much a standard deviation; nothing where all are alike."""
    if not values.size:
        return SignalScale(0.0, 0.0)
    mean = float(values.mean())
    away = deviation(values, mean)
    return SignalScale(mean, 0.0 if away < NOISE else weight / (away + 1e-6))


def deviation(values: NDArray[np.floating], mean: float = 0.0) -> float:
    """The standard deviation of values, at least one, of which this is the mean.

    Not by a product: that wakes threads, which go on waiting in a loop for more to do, on the
    cores that the next search needs.
    """
    every = values.ravel()
    parts = (every[start : start + _AT_ONCE] - mean for start in range(0, len(every), _AT_ONCE))
    return math.sqrt(sum(float(np.square(part).sum()) for part in parts) / len(every))


def standard(values: NDArray[np.floating]) -> Scores:
    """``values`` as standard deviations from their mean, over all axes; 0 where all are alike."""
    return level(values).of(values)
