"""The times of a search: relative, absolute, of day, or anchored to events searched for."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from domain.base import Frozen

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
        if self.day not in ("", *_DAYS_AGO) and not 1970 <= _day(self.day).year < LAST_YEAR:
            raise ValueError("no stream began on that day")
        return self

    def date(self, now: datetime) -> datetime:
        """Return a moment of the day that is meant, as seen from now; that of now without one."""
        if self.day in ("", *_DAYS_AGO):
            return now - timedelta(days=_DAYS_AGO.get(self.day, 0))
        return _day(self.day)


def _day(text: str) -> datetime:
    """Return the start of a day of this machine's calendar."""
    return datetime.strptime(text, _DATE)


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
