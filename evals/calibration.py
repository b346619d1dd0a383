"""Calibration: curves from raw confidence to the share right, and their reliability.

A question's id alone decides whether it is in the half that curves are fitted on or in the half
that measures reliability, so a report never covers questions that were fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from domain.asking import Calibration, Curve
from domain.errors import InputError
from evals.sampling import figure, mean
from evals.tables import AnsweredQuestion, ConfidenceThird
from store.files import make_private, open_private

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
    """Fit the isotonic regression of being right on raw confidence (least squares).

    A level that spans several raw confidences is stored as its two ends; one of too few answers is
    merged with the adjacent level.
    """
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
