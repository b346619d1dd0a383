"""Means over samples with bootstrap intervals, and pairs of answers compared by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from domain.base import Frozen
from evals.tables import AnsweredQuestion, Effect, MeanInterval

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


# Paired comparison: the same questions answered in two ways, and whether they differ by chance.


class Flip(Frozen):
    """A question that only one of both answers rightly."""

    id: str
    question: str
    types: tuple[str, ...]
    better: bool
    first: str
    second: str
    first_trajectory: str
    second_trajectory: str


class Comparison(Frozen):
    """Two compared runs. ``alone`` counts questions that only one of them has judged."""

    effect: Effect
    changes: tuple[Flip, ...]
    alone: int


def effect(
    first: str, second: str, before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Effect | None:
    """Compare the second way with the first; None if no question was judged in both.

    Its p is that of McNemar's exact test, two-sided: changes are as likely either way (Edwards,
    1948).
    """
    # SciPy's statistics are slow to import; only comparisons need them.
    from scipy.stats import binomtest

    pairs = list(paired(before, after).values())
    if not pairs:
        return None
    better = sum(
        first_row.right is False and second_row.right is True for first_row, second_row in pairs
    )
    worse = sum(
        first_row.right is True and second_row.right is False for first_row, second_row in pairs
    )
    return Effect(
        first=first,
        second=second,
        questions=len(pairs),
        before=figure(first_row.right for first_row, _ in pairs),
        after=figure(second_row.right for _, second_row in pairs),
        difference=figure(float(bool(b.right)) - float(bool(a.right)) for a, b in pairs),
        better=better,
        worse=worse,
        p=float(binomtest(better, better + worse, 0.5).pvalue) if better + worse else 1.0,
    )


def paired(
    before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]
) -> Mapping[str, tuple[AnsweredQuestion, AnsweredQuestion]]:
    """Pair the same questions, judged both ways, by id; an edited question is not the same."""
    known = {row.id: row for row in before if row.right is not None}
    fields = ("question", "options", "reference")
    return {
        row.id: (known[row.id], row)
        for row in after
        if row.right is not None
        and row.id in known
        and all(getattr(known[row.id], name) == getattr(row, name) for name in fields)
    }


def changes(before: Sequence[AnsweredQuestion], after: Sequence[AnsweredQuestion]) -> list[Flip]:
    """Return the questions that only one of both answers rightly, losses first."""
    flips = [
        Flip(
            id=row.id,
            question=row.question,
            types=row.types,
            better=bool(other_row.right),
            first=row.option or row.answer,
            second=other_row.option or other_row.answer,
            first_trajectory=row.trajectory,
            second_trajectory=other_row.trajectory,
        )
        for row, other_row in paired(before, after).values()
        if row.right is not other_row.right
    ]
    return sorted(flips, key=lambda row: (row.better, row.id))
