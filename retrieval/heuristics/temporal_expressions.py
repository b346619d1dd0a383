"""Temporal expressions in questions, as soft memberships in [0, 1] over video time (English).

Video time that spans days counts from a midnight: ``(day - 1) * 86400`` plus the second of the day.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from retrieval.heuristics.language import is_english

Times = NDArray[np.float64]
"""Seconds of video time, shape (N,)."""

DAY, HOUR = 86_400.0, 3_600.0
_PARTS = {  # hours of the day, generous at both ends; a night runs past midnight
    "morning": (5.0, 11.5),
    "noon": (11.5, 14.0),
    "afternoon": (12.5, 18.75),
    "evening": (18.0, 24.0),
    "night": (18.25, 29.0),
}
_COUNT = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: float(count) for count, word in enumerate(_COUNT.split())} | {"a": 1.0, "an": 1.0}
_NUMBER = rf"(?:\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})"
_MAX_COUNT = 1e9
"""Larger counts are clipped: they would overflow."""
_AGO = re.compile(
    rf"\b({_NUMBER})(?: and an? half)? (day|hour|minute|min)s?(?: and an? half)?"
    rf"(?: ({_NUMBER}) hours?)? ago"
)
_HALF = re.compile(r"\band an? half\b")
_PART = {part: re.compile(rf"\b{part}\b") for part in _PARTS}
_ANY_PART = "|".join(_PARTS)
_BEFORE_YESTERDAY = re.compile(rf"\b(?:day|{_ANY_PART}) before yesterday\b")
_TODAY = re.compile(rf"\btoday\b|\bthis (?:{_ANY_PART})\b")
_IN_PART = re.compile(rf"\b(?:in|on|at) (?:the )?(?:{_ANY_PART})\b")

PLAN = re.compile(
    r"\b(?:plan|plans|planning|going to|will|should|need|needs|needed|want|wants|have in|later"
    r"|tomorrow|task|tasks)\b",
    re.I,
)
"""Words of plans: a time beside them is that of the plan, not of the line."""
LATEST = re.compile(r"\b(?:last|previous|previously|before|latest|just now|just)\b", re.I)
"""Words that ask for the latest of several moments."""


def _number(word: str) -> float:
    return _NUMBERS[word] if word in _NUMBERS else min(float(word), _MAX_COUNT)


def _soft_interval(times: Times, start: float, end: float, soft: float = HOUR) -> Times:
    """Return 1 inside ``[start, end]``, falling linearly to 0 over ``soft`` seconds outside."""
    outside = np.maximum(np.maximum(start - times, times - end), 0.0)
    return np.clip(1 - outside / soft, 0, 1)


def _log_gaussian(times: Times, as_of: float, ago: float, width: float = 0.35) -> Times:
    """Return a Gaussian over the log of the age: people round ages in proportion to them."""
    ratio = np.maximum(as_of - times, 60.0) / max(ago, 60.0)
    return np.asarray(np.exp(-0.5 * (np.log(ratio) / width) ** 2), dtype=np.float64)


def _part_of_day(text: str) -> tuple[float, float] | None:
    return next((_PARTS[part] for part, word in _PART.items() if word.search(text)), None)


def _on_day(times: Times, as_of: float, back: float, part: tuple[float, float] | None) -> Times:
    midnight = np.floor(as_of / DAY) * DAY - back * DAY
    start, end = part or (0.0, 24.0)
    return _soft_interval(times, midnight + start * HOUR, midnight + end * HOUR)


def _ago(text: str, times: Times, as_of: float) -> Times | None:
    """Evaluate ``3 hours ago``, ``two days ago``, ``a day 4 hours ago``, ``half a day ago``."""
    if re.search(r"\bhalf a day ago\b", text):
        return _log_gaussian(times, as_of, 12 * HOUR)
    if re.search(r"\bhalf an hour ago\b", text):
        return _log_gaussian(times, as_of, 0.5 * HOUR)
    match = _AGO.search(text)
    if match is None:
        return None
    count = _number(match[1]) + (0.5 if _HALF.search(text) else 0.0)
    if match[2] != "day":
        return _log_gaussian(
            times, as_of, max(60.0, count * (HOUR if match[2] == "hour" else 60.0))
        )
    return _days_ago(text, times, as_of, _number(match[1]), match[3])


def _days_ago(text: str, times: Times, as_of: float, days: float, hours: str | None) -> Times:
    part = _part_of_day(text)
    if part:
        return _on_day(times, as_of, days, part)
    ago = days * DAY + (_number(hours) * HOUR if hours else 0.0)
    if hours:
        return _log_gaussian(times, as_of, ago, width=0.1)
    return _soft_interval(times, as_of - ago - 8 * HOUR, as_of - ago + 8 * HOUR, soft=8 * HOUR)


def _days_back(text: str) -> tuple[float, tuple[float, float] | None] | None:
    """Return the days back that ``text`` refers to, and hours of the day; None for none."""
    part = _part_of_day(text)
    if _BEFORE_YESTERDAY.search(text):
        return 2.0, part
    if re.search(r"\byesterday\b", text):
        return 1.0, part
    if re.search(r"\blast (?:night|evening)\b", text):
        return 1.0, _PARTS["night"]
    if re.search(r"\btonight\b", text):
        return 0.0, _PARTS["night"]
    return (0.0, part) if _TODAY.search(text) else None


def temporal_fit(text: str, times: Times, as_of: float) -> Times | None:
    """Return the fit of each time with the temporal expression in ``text``, in [0, 1], (N,).

    Args:
        text: A question or an option, such as "the day before yesterday at noon".
        times: Seconds of video time, (N,).
        as_of: When the question is asked, in seconds of video time.

    Returns:
        None if the text has no temporal expression, or is in another language than English.
    """
    if not is_english(text):
        return None
    text = text.lower()
    ago = _ago(text, times, as_of)
    if ago is not None:
        return ago
    day = _days_back(text)
    if day is not None:
        return _on_day(times, as_of, *day)
    if re.search(r"\bjust\b", text):
        return _soft_interval(times, as_of - HOUR, as_of, soft=2 * HOUR)
    return _on_day(times, as_of, 0.0, _part_of_day(text)) if _IN_PART.search(text) else None


def are_times(options: tuple[str, ...], as_of: float) -> bool:
    """Check whether at least 3 in 4 options, of two or more, are short temporal expressions."""
    now = np.array([as_of])
    are_temporal = [
        len(option.split()) <= 8 and temporal_fit(option, now, as_of) is not None
        for option in options
    ]
    return len(are_temporal) > 1 and sum(are_temporal) >= 0.75 * len(are_temporal)
