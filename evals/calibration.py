"""Calibration: curves from raw confidence to the share that is right, and how true they are.

A question belongs to the half that is fitted on, or to the half that tells how true the curves are,
by its id alone: so whatever is fitted, a report never tells of questions that were fitted on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from domain.confidence import Calibration, Curve
from domain.errors import InputError
from evals.sampling import mean
from evals.tables import AnsweredQuestion, Third, figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 30
"""Answers that a curve is fitted on, at least."""
LEVEL = 20
"""Answers of one level of a curve, at least."""
THIRDS = 3
DIGITS = 4


def is_fitted_on(question: str) -> bool:
    """Whether the question with this id is of the half that curves are fitted on."""
    return sha256(question.encode()).digest()[0] % 2 == 0


def fit(rows: Iterable[AnsweredQuestion], known: Calibration = Calibration()) -> Calibration:  # noqa: B008 - frozen
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


def curve(rows: Sequence[AnsweredQuestion]) -> Curve:
    """The isotonic regression of being right on raw confidence (least squares, never falling).

    A level that holds from one raw confidence to another is kept by its two ends; one of too few
    answers is joined with the level beside it.
    """
    from scipy.optimize import isotonic_regression

    raw, counts, shares = _together([(row.raw or 0.0, bool(row.right)) for row in rows])
    found = isotonic_regression(shares, weights=counts)
    starts = [int(start) for start in found.blocks[:-1]]
    levels = [
        _Level(float(raw[start]), float(raw[stop - 1]), float(counts[start:stop].sum()), float(x))
        for start, stop, x in zip(
            starts, [*starts[1:], len(raw)], found.x[found.blocks[:-1]], strict=True
        )
    ]
    ends = {
        end: round(one.right, DIGITS) for one in _broad(levels) for end in (one.first, one.last)
    }
    return Curve(raw=tuple(ends), right=tuple(ends.values()))


class _Level(NamedTuple):
    """Answers of raw confidence ``first`` to ``last``, so many, of which this share is right."""

    first: float
    last: float
    answers: float
    right: float

    def joined(self, other: _Level) -> _Level:
        """Both as one; ``other`` follows."""
        answers = self.answers + other.answers
        right = (self.answers * self.right + other.answers * other.right) / answers
        return _Level(self.first, other.last, answers, right)


def _broad(levels: Sequence[_Level]) -> list[_Level]:
    """The levels, each of too few answers joined to the one before it, the first to the next."""
    broad: list[_Level] = []
    for one in levels:
        small = broad and min(one.answers, broad[-1].answers) < LEVEL
        broad.append(broad.pop().joined(one) if small else one)
    return broad


def _together(
    judged: Sequence[tuple[float, bool]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Equal raw confidences as one: their value, how many they are, the share that is right."""
    raw, place, counts = np.unique(
        [one for one, _ in judged], return_inverse=True, return_counts=True
    )
    right = np.bincount(place, weights=[float(right) for _, right in judged])
    return raw, counts.astype(np.float64), right / counts


def reliability(rows: Iterable[AnsweredQuestion]) -> tuple[Third, ...]:
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
    from store.private_files import make_private, open_private

    make_private(path.parent)
    with open_private(path) as file:
        file.write(fitted.model_dump_json(indent=1) + "\n")
