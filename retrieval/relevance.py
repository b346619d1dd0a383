"""Relevance of every cell of a search: the output of ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.line_set import Floats, Ints, Scores

NOISE = 1e-5
"""Deviations below this are rounding errors of matrix products and count as 0."""


@dataclass(frozen=True)
class SignalScale:
    """An affine scale of a signal: ``(value - mean) * weight``."""

    mean: float
    weight: float

    def of(self, values: NDArray[np.floating]) -> Scores:
        """Scale values."""
        return np.asarray((values.astype(np.float64) - self.mean) * self.weight)


def signal_scale(values: NDArray[np.floating], weight: float = 1.0) -> SignalScale:
    """Return the scale on which one standard deviation is ``weight``; 0 if values are equal."""
    if not values.size:
        return SignalScale(0.0, 0.0)
    deviation = float(values.std())
    return SignalScale(
        float(values.mean()), 0.0 if deviation < NOISE else weight / (deviation + 1e-6)
    )


def standardise(values: NDArray[np.floating]) -> Scores:
    """Return z-scores over all axes; zeros if all values are equal."""
    return signal_scale(values).of(values)


@dataclass(frozen=True, eq=False)
class Relevance:
    """The relevance of every cell, as a weighted sum of z-scores.

    ``question`` (N,) is relevance to the question alone, ``options`` (O, N) to the question with
    each option; options are chosen by ``support`` (O, N), which adds the people signal. ``lines``
    (1 + 2 O or 1, M) are the cosines of every line with the question, the statements and the
    options (only the question if options are times), ``scales`` those of these three groups.
    ``near`` (N,) is the cosine of each cell's closest line with the question. ``line_support``
    (O, M) is the support by line, if a cell is scored by its best line
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
        """The relevance of every cell, with the best option if there are any, (N,)."""
        return np.asarray(self.options.max(axis=0)) if len(self.options) else self.question

    def cosine_scores(self, lines: Ints) -> Scores:
        """Return the standardised cosines of lines, summed, (O, L); (1, L) without options."""
        scores = self.scales[0].of(self.lines[:1, lines])
        if len(self.lines) > 1:
            count = (len(self.lines) - 1) // 2
            scores = scores + self.scales[1].of(self.lines[1 : 1 + count, lines])
            scores = scores + self.scales[2].of(self.lines[1 + count :, lines])
        return scores

    def of_options(self, rows: Sequence[int]) -> Relevance:
        """Select some of the options; scores stay comparable with the others'."""
        count = len(self.options)
        if not count or list(rows) == list(range(count)):
            return self
        chosen = list(rows)
        texts = len(self.lines) > 1
        shown = [0, *(1 + i for i in chosen), *(1 + count + i for i in chosen)] if texts else [0]
        return replace(
            self,
            options=self.options[chosen],
            support=self.support[chosen],
            lines=self.lines[shown],
            line_support=None if self.line_support is None else self.line_support[chosen],
        )
