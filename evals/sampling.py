"""Means over samples and their confidence intervals: percentile bootstrap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from evals.tables import MeanInterval

RESAMPLES = 2_000
COVERED = 0.90


def interval(values: Sequence[float], covered: float = COVERED) -> tuple[float, float]:
    """Return the middle ``covered`` of the means of resamples.

    Percentile bootstrap (Efron and Tibshirani, 1993, ch. 13). The same values give the same
    interval; without values it is (0, 0).
    """
    if not values:
        return 0.0, 0.0
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    means = np.asarray(values, dtype=np.float64)[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - covered) / 2, (1 + covered) / 2])
    return float(low), float(high)


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return float(np.mean(values)) if values else 0.0


def median(values: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return float(np.median(values)) if values else 0.0


def figure(values: Iterable[float | bool | None]) -> MeanInterval | None:
    """Return the mean of the known values; None of nothing. Shares are in [0, 1]."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    low, high = interval(known)
    return MeanInterval(value=mean(known), low=low, high=high, of=len(known))
