"""Calibration: curves from raw confidence to the share that is right, and how true they are.

A question belongs to the half that is fitted on, or to the half that tells how true the curves are,
by its id alone: so whatever is fitted, a report never tells of questions that were fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from domain.confidence import Calibration, Curve
from domain.errors import InputError
from evals.sampling import mean
from evals.tables import QuestionRow, Third, figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 30
"""Answers that a curve is fitted on, at least."""
THIRDS = 3
DIGITS = 4


def is_fitted_on(question: str) -> bool:
    """Whether the question with this id is of the half that curves are fitted on."""
    return sha256(question.encode()).digest()[0] % 2 == 0


def fit(rows: Iterable[QuestionRow], known: Calibration = Calibration()) -> Calibration:  # noqa: B008 - frozen
    """Fit a profile's curves on the fitting half of judged answers.

    Args:
        rows: answers of any runs of one profile.
        known: the curves so far; one that has too few answers to be fitted anew stays.

    Raises:
        InputError: there are too few answers for any curve.
    """
    judged = [row for row in rows if row.right is not None and row.raw is not None]
    half = [row for row in judged if is_fitted_on(row.id)]
    options, opened = ([r for r in half if bool(r.options) is told] for told in (True, False))
    if max(len(options), len(opened)) < FEWEST:
        raise InputError(
            f"{len(half)} judged answers are too few to fit a curve on: at least {FEWEST} with "
            f"options, or {FEWEST} open ones, are needed; run more with 'homer eval run'"
        )
    return Calibration(
        options=curve(options) if len(options) >= FEWEST else known.options,
        open=curve(opened) if len(opened) >= FEWEST else known.open,
    )


def curve(rows: Sequence[QuestionRow]) -> Curve:
    """The isotonic regression of being right on raw confidence (least squares, never falling).

    A level that holds from one raw confidence to another is kept by its two ends.
    """
    from scipy.optimize import isotonic_regression

    ordered = sorted((row.raw or 0.0, bool(row.right)) for row in rows)
    raw, counts, shares = _together(ordered)
    levels = isotonic_regression(shares, weights=counts).x
    ends = [
        i
        for i in range(len(raw))
        if i in (0, len(raw) - 1) or levels[i] != levels[i - 1] or levels[i] != levels[i + 1]
    ]
    rounded = [round(float(levels[i]), DIGITS) for i in ends]
    return Curve(raw=tuple(float(raw[i]) for i in ends), right=tuple(rounded))


def _together(
    ordered: Sequence[tuple[float, bool]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Equal raw confidences as one: their value, how many they are, the share that is right."""
    raw, place, counts = np.unique(
        [one for one, _ in ordered], return_inverse=True, return_counts=True
    )
    right = np.bincount(place, weights=[float(told) for _, told in ordered])
    return raw, counts.astype(np.float64), right / counts


def reliability(rows: Iterable[QuestionRow]) -> tuple[Third, ...]:
    """What was said and what was right in each third, by confidence, of what is not fitted on."""
    told = [
        (row.confidence, row.right)
        for row in rows
        if row.confidence is not None and row.right is not None and not is_fitted_on(row.id)
    ]
    ordered = sorted(told, key=lambda one: one[0])
    parts = (
        ordered[len(ordered) * i // THIRDS : len(ordered) * (i + 1) // THIRDS]
        for i in range(THIRDS)
    )
    return tuple(_third(part) for part in parts if part)


def _third(part: Sequence[tuple[float, bool]]) -> Third:
    right = figure(told for _, told in part)
    if right is None:
        raise ValueError("a third has answers")
    said = mean([one for one, _ in part])
    return Third(least=part[0][0], most=part[-1][0], said=said, right=right)


def save(path: Path, fitted: Calibration) -> None:
    """Write a profile's calibration where its home keeps it."""
    from store.private import make_private, open_private

    make_private(path.parent)
    with open_private(path) as file:
        file.write(fitted.model_dump_json(indent=1) + "\n")
