"""Means over samples with bootstrap intervals, pairs of answers compared by them, and calibration.

Calibration: curves from raw confidence to the share right, and their reliability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domain.asking import Calibration, Curve
from domain.base import Frozen
from domain.errors import InputError
from evals.tables import AnsweredQuestion, ConfidenceThird, Effect, MeanInterval
from store.files import make_private, open_private

RESAMPLES = 2_000
COVERED = 0.90


def interval(values: Sequence[float], covered: float = COVERED) -> tuple[float, float]:
    """Return the middle ``covered`` of the means of resamples.

    The same values give the same interval; without values it is (0, 0).
    """
    if not values:
        return 0.0, 0.0
    # Percentile bootstrap (Efron and Tibshirani, 1993, ch. 13).
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
    """Compare the second way with the first; None if no question was judged in both."""
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
        # McNemar's exact test, two-sided: changes are as likely either way (Edwards, 1948).
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


# Calibration.
#
# A question's id alone decides whether it is in the half that curves are fitted on or in the half
# that measures reliability, so a report never covers questions that were fitted on.


FEWEST = 30
"""Minimum number of answers to fit a curve on."""
LEVEL = 20
"""Minimum number of answers in one level of a curve."""
THIRDS = 3
DIGITS = 4


def is_fitted_on(question: str) -> bool:
    """Check whether the question with this id is in the half that curves are fitted on."""
    return sha256(question.encode()).digest()[0] % 2 == 0


def fit(rows: Iterable[AnsweredQuestion], known: Calibration = Calibration()) -> Calibration:  # noqa: B008 - frozen
    """Fit a profile's curves on the fitting half of judged answers.

    Args:
        rows: answers of any runs of one profile.
        known: the curves so far; one with too few answers to be fitted again stays.

    Raises:
        InputError: there are too few answers for any curve.
    """
    judged = [row for row in rows if row.right is not None and row.raw is not None]
    half = [row for row in judged if is_fitted_on(row.id)]
    with_options, open_answers = (
        [r for r in half if bool(r.options) is has_options] for has_options in (True, False)
    )
    if max(len(with_options), len(open_answers)) < FEWEST:
        raise InputError(
            f"{len(half)} judged answers are too few to fit a curve on: at least {FEWEST} with "
            f"options, or {FEWEST} open ones, are needed; run more with 'homer eval run'"
        )
    return Calibration(
        options=curve(with_options) if len(with_options) >= FEWEST else known.options,
        open=curve(open_answers) if len(open_answers) >= FEWEST else known.open,
    )


def curve(rows: Sequence[AnsweredQuestion]) -> Curve:
    """Fit the isotonic regression of being right on raw confidence (least squares)."""
    # SciPy is slow to import, and reports do without.
    from scipy.optimize import isotonic_regression

    # Equal raw confidences are one: their value, their count, and the share right.
    raw, place, numbers = np.unique(
        [row.raw or 0.0 for row in rows], return_inverse=True, return_counts=True
    )
    right = np.bincount(place, weights=[float(bool(row.right)) for row in rows])
    counts = numbers.astype(np.float64)
    regression = isotonic_regression(right / counts, weights=counts)
    starts = [int(start) for start in regression.blocks[:-1]]
    levels = [
        _Level(float(raw[start]), float(raw[stop - 1]), float(counts[start:stop].sum()), float(x))
        for start, stop, x in zip(
            starts, [*starts[1:], len(raw)], regression.x[regression.blocks[:-1]], strict=True
        )
    ]
    merged: list[_Level] = []
    for level in levels:  # One of too few answers joins the one before it, the first the next.
        small = merged and min(level.answers, merged[-1].answers) < LEVEL
        merged.append(merged.pop().joined(level) if small else level)
    # A level that spans several raw confidences is stored as its two ends.
    ends = {
        end: round(level.right, DIGITS) for level in merged for end in (level.first, level.last)
    }
    return Curve(raw=tuple(ends), right=tuple(ends.values()))


class _Level(NamedTuple):
    """Answers of raw confidence ``first`` to ``last``: their number, and the share right."""

    first: float
    last: float
    answers: float
    right: float

    def joined(self, other: _Level) -> _Level:
        """Merge with the following level."""
        answers = self.answers + other.answers
        right = (self.answers * self.right + other.answers * other.right) / answers
        return _Level(self.first, other.last, answers, right)


def reliability(rows: Iterable[AnsweredQuestion]) -> tuple[ConfidenceThird, ...]:
    """Compare confidence with the share right, by thirds, on answers not fitted on."""
    answers = [
        (row.confidence, row.right)
        for row in rows
        if row.confidence is not None and row.right is not None and not is_fitted_on(row.id)
    ]
    ordered = sorted(answers, key=lambda answer: answer[0])
    parts = (
        ordered[len(ordered) * i // THIRDS : len(ordered) * (i + 1) // THIRDS]
        for i in range(THIRDS)
    )
    return tuple(
        ConfidenceThird(
            least=part[0][0],
            most=part[-1][0],
            said=mean([confidence for confidence, _ in part]),
            right=right,
        )
        for part in parts
        if (right := figure(is_right for _, is_right in part))
    )


def save(path: Path, fitted: Calibration) -> None:
    """Write a profile's calibration into its home."""
    make_private(path.parent)
    with open_private(path) as file:
        file.write(fitted.model_dump_json(indent=1) + "\n")
