"""How relevant every cell of a search is: what ranking makes, and the modes choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.line_set import Floats, Ints, Scores

NOISE = 1e-5
"""Values that differ by less are equal: the last bits of a matrix product say nothing."""


@dataclass(frozen=True)
class SignalScale:
    """A signal's mean, and what one of it adds to a score."""

    mean: float
    weight: float

    def of(self, values: NDArray[np.floating]) -> Scores:
        """Return what values add to scores."""
        return np.asarray((values.astype(np.float64) - self.mean) * self.weight)


def scale_of(values: NDArray[np.floating], weight: float = 1.0) -> SignalScale:
    """Scale a signal so that one standard deviation counts ``weight``; 0 where all are alike."""
    if not values.size:
        return SignalScale(0.0, 0.0)
    deviation = float(values.std())
    return SignalScale(
        float(values.mean()), 0.0 if deviation < NOISE else weight / (deviation + 1e-6)
    )


def standard(values: NDArray[np.floating]) -> Scores:
    """Return values as standard deviations from their mean, over all axes; 0 where all are alike.

    Zeros where there is nothing to compare with.
    """
    return scale_of(values).of(values)


@dataclass(frozen=True, eq=False)
class Relevance:
    """How relevant every cell is, in standard deviations added up.

    ``question`` (N,) is relevance to the question alone, ``options`` (O, N) with what each option
    says; ``support`` (O, N) is what the choice among options rests on. ``lines`` (1 + 2 O or 1, M)
    are the cosines of every line with the question, then the statements, then the options (the
    latter two not where the options are times), and ``scales`` those of these three groups.
    ``near`` (N,) is each cell's closest line to the question. ``line_support`` (O, M) is what every
    line says for each option, where a cell is as good as its best line
    (``retrieval.heuristics.captioned_options``).
    """

    question: Scores
    options: Scores
    support: Scores
    lines: Floats
    near: Floats
    scales: tuple[SignalScale, ...]
    line_support: Scores | None = None

    @property
    def cells(self) -> Scores:
        """The relevance of every cell, by the option it fits best where there are any, (N,)."""
        return np.asarray(self.options.max(axis=0)) if len(self.options) else self.question

    def own(self, lines: Ints) -> Scores:
        """Return what the words of some lines themselves say, (O, L); (1, L) without options."""
        own = self.scales[0].of(self.lines[:1, lines])
        if len(self.lines) > 1:
            count = (len(self.lines) - 1) // 2
            own = own + self.scales[1].of(self.lines[1 : 1 + count, lines])
            own = own + self.scales[2].of(self.lines[1 + count :, lines])
        return own

    def of_options(self, rows: Sequence[int]) -> Relevance:
        """Return the same of some of the options; scores stay comparable with the others'."""
        count = len(self.options)
        if not count or list(rows) == list(range(count)):
            return self
        own = list(rows)
        texts = len(self.lines) > 1
        shown = [0, *(1 + i for i in own), *(1 + count + i for i in own)] if texts else [0]
        return replace(
            self,
            options=self.options[own],
            support=self.support[own],
            lines=self.lines[shown],
            line_support=None if self.line_support is None else self.line_support[own],
        )
