"""Finds the time that a search names: by code, from the events that its anchors match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from domain.errors import InputError
from domain.marked import marked
from domain.time import TimeSpan
from strategies.event_documents import EventDocuments
from strategies.vam.times import (
    AbsoluteRange,
    AnchoredRange,
    ClockRange,
    EventAnchor,
    RelativeRange,
    TimeRange,
)
from strategies.vam.wall_clock import span_of_clock

if TYPE_CHECKING:
    from datetime import datetime

    from models.ports import Vector

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
