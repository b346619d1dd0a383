"""Time: recent moments first, and how well a moment fits a time that is said in words."""

from __future__ import annotations

import numpy as np

from retrieval.heuristics.clock import HOUR, PLAN, said_time
from retrieval.line_set import Scores

SOON_S = 60.0
"""What is nearer than this to the asking is equally recent, in seconds."""
QUESTION_FLOOR, OPTION_FLOOR = 0.05, 0.02
"""Added to how well a moment fits, so that its logarithm is bounded."""


def recency(times: Scores, now_s: float) -> Scores:
    """Return minus the log of how many hours ago each moment (N,) was."""
    return np.asarray(-np.log(np.maximum(now_s - times, SOON_S) / HOUR))


def question_fit(question: str, times: Scores, now_s: float) -> Scores:
    """Return the log of how well each moment fits the time a question says; zeros for none."""
    fit = None if PLAN.search(question) else said_time(question, times, now_s)
    if fit is None or not fit.any():
        return np.zeros(len(times))
    return np.asarray(np.log(fit + QUESTION_FLOOR))


def option_fits(options: tuple[str, ...], times: Scores, now_s: float) -> Scores:
    """Return the log of how well each moment fits the time each option says, shape (O, N)."""
    fits = [said_time(option, times, now_s) for option in options]
    blank = np.zeros(len(times))
    return np.asarray(np.log(np.stack([blank if f is None else f for f in fits]) + OPTION_FLOOR))
