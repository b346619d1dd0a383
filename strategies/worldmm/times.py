"""The times of a video that a query names, as questions and models write them; pure.

``DAY 2 18:34:01 - 18:34:29``, ``d2 18:34``, ``12:30-12:50``, ``1:02:03 to 1:04:00``, ``12:30``.
"""

from __future__ import annotations

import re

from domain.time import TimeSpan, parse_clock

_TIME = r"(?:d(?:ay)?\s*([1-9]\d{0,4})[\s,]+(?:at\s+)?)?(\d{1,6}(?::\d{2}){1,2})"
_SPAN = re.compile(
    rf"(?<![\w:.]){_TIME}(?:\s*(?:-|–|—|to|until)\s*{_TIME})?(?![\w:])", re.IGNORECASE
)


def find_span(text: str) -> TimeSpan | None:
    """Return the first stretch of time in a text, an instant for a single time; None without any.

    The second time is of the day of the first, unless it names one; one before the first is left
    out. Two numbers are minutes and seconds, but hours and minutes where a day is named.
    """
    match = _SPAN.search(text)
    if match is None:
        return None
    first_day, first, last_day, last = match.groups()
    start = _clock(first_day, first)
    end = _clock(last_day or first_day, last) if last else start
    return TimeSpan.of(start, max(start, end))


def names_only_time(text: str) -> bool:
    """Check whether a text is a stretch of time and nothing else."""
    return bool(_SPAN.fullmatch(text.strip()))


def _clock(day: str | None, clock: str) -> int:
    if day is None:
        return parse_clock(clock)
    return parse_clock(f"d{day} {clock}" if clock.count(":") == 2 else f"d{day} {clock}:00")
