"""The times of a search: relative, absolute, of day, or anchored to events searched for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from domain.asking import Evidence
from domain.base import Frozen
from domain.errors import InputError
from domain.time import TimeSpan
from domain.words import marked
from retrieval.heuristics.questions import function_words
from retrieval.terms import terms
from store.queries.outline import began_times
from strategies.event_documents import EventDocuments

if TYPE_CHECKING:
    from models.ports import Vector
    from store.database import Store

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_DATE = "%Y-%m-%d"
_DAYS_AGO = {"today": 0, "yesterday": 1}
LAST_YEAR = 3000
WEEK_S = 7 * 86_400
VERIFIED_CHARACTERS = 400


class RelativeRange(Frozen):
    """The last seconds before the moment of the question."""

    kind: Literal["relative"]
    last_s: float = Field(gt=0, allow_inf_nan=False, description="so many seconds before now")


class AbsoluteRange(Frozen):
    """From one second of the video to another."""

    kind: Literal["absolute"]
    start_s: float = Field(ge=0, allow_inf_nan=False)
    end_s: float = Field(gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_s <= self.start_s:
            raise ValueError("end_s is not after start_s")
        return self


class EventAnchor(Frozen):
    """An event that is searched for, and which of its occurrences is meant."""

    q: str = Field(min_length=1, description="what happens in it")
    top_k: int = Field(default=20, ge=1, le=50, description="events that are looked through")
    inspect_k: int = Field(default=0, ge=0, le=20, description="of those, whose frames are shown")
    threshold: float = Field(default=0.65, ge=0, allow_inf_nan=False)
    occurrence: int = Field(default=1, ge=1, le=100, description="the n-th one in order of time")
    verify: str = Field(
        default="", max_length=VERIFIED_CHARACTERS, description="what its frames have to show"
    )

    @model_validator(mode="after")
    def _inspected_are_found(self) -> Self:
        if self.inspect_k > self.top_k:
            raise ValueError("inspect_k is more than top_k")
        return self


class AnchoredRange(Frozen):
    """Around, before or after an event."""

    kind: Literal["anchored"]
    relation: Literal["around", "before", "after"]
    anchor: EventAnchor
    within_s: float = Field(
        gt=0, le=WEEK_S, allow_inf_nan=False, description="so far from it, at most a week"
    )


class BetweenRange(Frozen):
    """Between the end of one event and the start of another."""

    kind: Literal["between"]
    first: EventAnchor
    second: EventAnchor


class ClockRange(Frozen):
    """A time of day, of a stream whose start is on record."""

    kind: Literal["clock"]
    start: str = Field(description="such as 14:05")
    end: str = Field(default="", description="empty: a minute from start on")
    day: str = Field(
        default="",
        description="such as 2026-11-26, today or yesterday; empty: the latest such time",
    )

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        if clock_parts(self.start) is None or (self.end and clock_parts(self.end) is None):
            raise ValueError("start and end are times of day such as 14:05")
        if (
            self.day not in ("", *_DAYS_AGO)
            and not 1970 <= datetime.strptime(self.day, _DATE).year < LAST_YEAR
        ):
            raise ValueError("no stream began on that day")
        return self

    def date(self, now: datetime) -> datetime:
        """Return a moment of the day that is meant, as seen from now; that of now without one."""
        if self.day in ("", *_DAYS_AGO):
            return now - timedelta(days=_DAYS_AGO.get(self.day, 0))
        return datetime.strptime(self.day, _DATE)


def clock_parts(time: str) -> tuple[int, int, int] | None:
    """Return hour, minute and second of ``H:MM`` or ``H:MM:SS``; None if it is no time of day."""
    match = _CLOCK.fullmatch(time)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups())
    return (hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


TimeRange = Annotated[
    RelativeRange | AbsoluteRange | AnchoredRange | BetweenRange | ClockRange,
    Field(discriminator="kind"),
]


# Times of day of a stream: read in questions, found in its video time, and named in results.
#
# They are by this machine's clock and time zone. Of a file it is not known when it was recorded.

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
_TIME = r"(?<![\d:.])(\d{1,2}:\d{2}(?::\d{2})?)(?![\d:])(?:\s*(am|pm)\b)?"
_DAY = re.compile(r"\b(?:on\s+)?(\d{4}-\d{2}-\d{2}|today|yesterday|heute|gestern)\b", re.I)
_TIME_OF_DAY = re.compile(
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
    match = _TIME_OF_DAY.search(text)
    if match is None:
        return None
    start, end = _start_and_end(*match.groups(""))
    day = _DAY.search(text)
    rest = text.replace(match[0], " ")
    rest = " ".join((rest.replace(day[0], " ") if day else rest).split()).replace(" ?", "?")
    named = day[1].lower() if day else ""
    try:
        times = ClockRange(kind="clock", day=_NAMED_DAYS.get(named, named), start=start, end=end)
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


# Finds the time that a search names: by code, from the events that its anchors match.

SECOND = 1_000
NO_CLOCK = marked(
    "the time of day of these videos is not on record: search by seconds of the video"
)
ALIKE_SCORES = 0.1
"""Events whose scores are this far below the best one at most match as well as it does."""


class AnchorMatch(NamedTuple):
    """An event that matches an anchor: its number in its video, and its span."""

    number: int
    span: TimeSpan


FindMatches = Callable[[EventAnchor], Sequence[AnchorMatch]]
"""Returns the events of a video that match an anchor, in any order."""


def resolve(
    times: TimeRange, now_ms: int, find: FindMatches, began: datetime | None = None
) -> TimeSpan:
    """Return the span of a video that a search is about; it may be empty.

    Args:
        times: what the search names.
        now_ms: the moment of the question, in the video's time.
        find: finds events.
        began: when the video's time 0 was; None: that is not known.

    Raises:
        InputError: an anchor has no such occurrence; the message says how many there are. Or a
            time of day is asked for, and that of the video is not known.
    """
    if isinstance(times, RelativeRange):
        return _span(now_ms - times.last_s * SECOND, now_ms, now_ms)
    if isinstance(times, AbsoluteRange):
        return _span(times.start_s * SECOND, times.end_s * SECOND, now_ms)
    if isinstance(times, AnchoredRange):
        event = occurrence(times.anchor, find(times.anchor))
        within = times.within_s * SECOND
        start = event.end_ms if times.relation == "after" else event.start_ms - within
        end = event.start_ms if times.relation == "before" else event.end_ms + within
        return _span(start, end, now_ms)
    if isinstance(times, ClockRange):
        if began is None:
            raise InputError(NO_CLOCK)
        return _span(*span_of_clock(times, began, now_ms), now_ms)
    both = [occurrence(anchor, find(anchor)) for anchor in (times.first, times.second)]
    earlier, later = sorted(both, key=lambda span: span.start_ms)
    return _span(earlier.end_ms, later.start_ms, now_ms)


def anchor_matches(
    events: EventDocuments, query: str, vector: Vector, threshold: float, most: int
) -> list[AnchorMatch]:
    """Return the events that a query means: those that match about as well as the best."""
    found = events.matches(query, vector, threshold, most)
    least = found[0][1] - ALIKE_SCORES if found else 0.0
    return [AnchorMatch(one.number, one.span) for one, score in found if score >= least]


def occurrences(matches: Sequence[AnchorMatch]) -> list[TimeSpan]:
    """Return when something happened: events that follow each other at once are one occurrence."""
    found: list[TimeSpan] = []
    last: int | None = None
    for number, span in sorted(matches):
        if last is not None and number == last + 1:
            found[-1] = TimeSpan.of(found[-1].start_ms, span.end_ms)
        else:
            found.append(span)
        last = number
    return found


def occurrence(anchor: EventAnchor, matches: Sequence[AnchorMatch]) -> TimeSpan:
    """Return the n-th occurrence of an anchor.

    Raises:
        InputError: there are fewer; the message says how many.
    """
    found = occurrences(matches)
    if anchor.occurrence > len(found):
        times = "once" if len(found) == 1 else f"{len(found)} times"
        raise InputError(
            f"{anchor.q!r} was found {times}, so there is no occurrence {anchor.occurrence}: "
            "ask for an earlier one, or search without the anchor"
        )
    return found[anchor.occurrence - 1]


def _span(start_ms: float, end_ms: float, now_ms: int) -> TimeSpan:
    """Return a span within the video, up to now; empty where nothing of it is."""
    end = min(max(0, round(end_ms)), now_ms)
    return TimeSpan.of(min(max(0, round(start_ms)), end), end)
