"""The time signals: recency, and the fit of a cell with a temporal expression."""

from __future__ import annotations

import numpy as np

from retrieval.heuristics.temporal_expressions import HOUR, PLAN, temporal_fit
from retrieval.line_set import Scores

SOON_S = 60.0
"""Cells less than this many seconds before the question are equally recent."""
QUESTION_FLOOR, OPTION_FLOOR = 0.05, 0.02
"""Added to fits in [0, 1], so that their logarithms are bounded."""


def recency(times: Scores, now_s: float) -> Scores:
    """Return minus the log of the age in hours of each time (N,)."""
    return np.asarray(-np.log(np.maximum(now_s - times, SOON_S) / HOUR))


def question_fit(question: str, times: Scores, now_s: float) -> Scores:
    """Return the log fit of each time with the question's temporal expression; zeros for none."""
    fit = None if PLAN.search(question) else temporal_fit(question, times, now_s)
    if fit is None or not fit.any():
        return np.zeros(len(times))
    return np.asarray(np.log(fit + QUESTION_FLOOR))


def option_fits(options: tuple[str, ...], times: Scores, now_s: float) -> Scores:
    """Return the log fit of each time with each option's temporal expression, shape (O, N)."""
    fits = [temporal_fit(option, times, now_s) for option in options]
    blank = np.zeros(len(times))
    return np.asarray(np.log(np.stack([blank if f is None else f for f in fits]) + OPTION_FLOOR))
