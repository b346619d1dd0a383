"""Times of day of a stream: read in questions, found in its video time, and named in results.

They are by this machine's clock and time zone. Of a file it is not known when it was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from domain.asking import Evidence
from domain.time import TimeSpan
from retrieval.heuristics.language import function_words
from retrieval.terms import terms
from store.queries.recaps import began_times
from strategies.vam.times import ClockRange, clock_parts

if TYPE_CHECKING:
    from store.database import Store

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
_TIME = r"(?<![\d:.])(\d{1,2}:\d{2}(?::\d{2})?)(?![\d:])(?:\s*(am|pm)\b)?"
_DAY = re.compile(r"\b(?:on\s+)?(\d{4}-\d{2}-\d{2}|today|yesterday|heute|gestern)\b", re.I)
_CLOCK = re.compile(
    r"\b(?:at|around|between|from|um|gegen|zwischen|von)\s+"
    rf"{_TIME}(?:\s*(?:-|–|and|to|until|und|bis)\s*{_TIME})?(?:\s+uhr\b)?",
    re.I,
)
_NAMED_DAYS = {"heute": "today", "gestern": "yesterday"}
_ANYTHING = re.compile(
    r"what|was|go|going|happen(?:s|ed|ing)?|place|took|seen?|video|stream"
    r"|los|passierte?|geschah|geschehen"
)
"""Words of a question that asks for whatever happened at a time."""


class TimedQuestion(NamedTuple):
    """The time of day that a question names, and what else it asks for; "" for anything."""

    times: ClockRange
    query: str


def timed_question(text: str) -> TimedQuestion | None:
    """Read the time of day that a question names; None for none, or one that no day has."""
    match = _CLOCK.search(text)
    if match is None:
        return None
    start, end = _start_and_end(*match.groups(""))
    day = _DAY.search(text)
    rest = text.replace(match[0], " ")
    rest = " ".join((rest.replace(day[0], " ") if day else rest).split()).replace(" ?", "?")
    named = day[1].lower() if day else ""
    try:
        times = ClockRange(
            kind="clock",
            day=_NAMED_DAYS.get(named, named),
            start=start,
            end=end,
        )
    except ValueError:
        return None
    anything = all(map(_ANYTHING.fullmatch, set(terms(rest)) - function_words(rest)))
    return TimedQuestion(times, "" if anything else rest)


def _start_and_end(first: str, first_half: str, last: str, last_half: str) -> tuple[str, str]:
    """Return times of a day of 24 hours; "" without a last one.

    Where am or pm is said of one of them only, the other is so close to it that they are in order:
    "11:30 to 12:30 pm" begins in the morning.
    """
    if not last or bool(first_half) == bool(last_half):
        return _written(first, first_half), last and _written(last, last_half)
    half = first_half or last_half
    start, end = _written(first, half), _written(last, half)
    if (clock_parts(start) or ()) <= (clock_parts(end) or ()):
        return start, end
    other = "am" if half.lower() == "pm" else "pm"
    return (start, _written(last, other)) if first_half else (_written(first, other), end)


def _written(time: str, half: str) -> str:
    """Return a time of a day of 24 hours; ``half``: am or pm, if it was one of 12."""
    hour, rest = time.split(":", 1)
    if not half:
        return time
    return f"{int(hour) % 12 + (12 if half.lower() == 'pm' else 0)}:{rest}"


def span_of_clock(times: ClockRange, began: datetime, now_ms: int) -> tuple[float, float]:
    """Return from when to when a time of day is, in milliseconds of video time.

    Without a day it is the latest such time before now; without an end it is a minute.

    Args:
        began: when the video's time 0 was.
        now_ms: the moment of the question, in the video's time.
    """
    now = (began + timedelta(milliseconds=now_ms)).astimezone()
    start = _on_day(times.date(now), times.start)
    if not times.day and start > now:
        start = _on_day(times.date(now - DAY), times.start)
    end = _on_day(start, times.end) if times.end else start + MINUTE
    if end <= start:
        end = _on_day(start + DAY, times.end)
    since = timedelta(milliseconds=1)
    return (start - began) / since, (end - began) / since


def _on_day(day: datetime, time: str) -> datetime:
    """Return a time on a day of this machine's calendar, with its time zone."""
    hour, minute, second = clock_parts(time) or (0, 0, 0)
    local = datetime(day.year, day.month, day.day, hour, minute, second)
    return local.astimezone()


def clock_words(began: datetime, span: TimeSpan) -> str:
    """Return when a span was: ``2026-11-26 14:05:10 to 14:07:00``."""
    times = (timedelta(milliseconds=ms) for ms in (span.start_ms, span.end_ms))
    start, end = ((began + time).astimezone() for time in times)
    last = "%H:%M:%S" if start.date() == end.date() else "%Y-%m-%d %H:%M:%S"
    return f"{start:%Y-%m-%d %H:%M:%S} to {end.strftime(last)}"


class StreamClocks:
    """The times of day of streams."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def began(self, videos: Iterable[str]) -> dict[str, datetime]:
        """Return when time 0 of each video was, of those of which it is known."""
        with self._store.begin(snapshot=True) as session:
            known = began_times(session, list(dict.fromkeys(videos)))
        return {video: began.at for video, began in known.items() if began.live}

    def named(self, evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
        """Return evidence with its time of day before its text, where that is known."""
        pieces = tuple(evidence)
        began = self.began(piece.video for piece in pieces)
        return tuple(
            piece.model_copy(
                update={"text": f"({clock_words(began[piece.video], piece.span)}) {piece.text}"}
            )
            if piece.video in began
            else piece
            for piece in pieces
        )
