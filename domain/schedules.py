"""Schedules: intervals and cron lines, as a person writes and reads them."""

from __future__ import annotations

import re
from typing import Self

from pydantic import model_validator

from domain.base import Frozen
from domain.errors import InputError

MIN_INTERVAL_S = 10
"""The shortest interval: a run takes longer than that to start."""

MAX_INTERVAL_S = 366 * 86_400

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""As cron counts them, from 0."""

_EVERY = re.compile(r"every (?:(\d{1,8}) ?)?(second|minute|hour|day|[smhd])s?", re.IGNORECASE)
_AT = re.compile(rf"(daily|{'|'.join(DAYS)})(?: at)? (\d\d?):(\d\d)", re.IGNORECASE)
_CRON = re.compile(r"\S+( \S+){4}")
_CRON_AT = re.compile(r"(\d\d?) (\d\d?) \* \* (\*|[0-6])")

FORMS = "'every 5 minutes', 'daily 03:30', 'sunday 03:30' or a cron line of five fields"


class When(Frozen):
    """A schedule: an interval in seconds, or a cron line in this machine's time zone."""

    every_s: int | None = None
    cron: str | None = None

    @model_validator(mode="after")
    def _has_one_kind(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("it is either an interval or a cron line")
        if self.every_s is not None and not MIN_INTERVAL_S <= self.every_s <= MAX_INTERVAL_S:
            raise ValueError(f"it is between {MIN_INTERVAL_S} seconds and a year")
        return self

    def __str__(self) -> str:
        """Return the schedule in words that ``parse_when`` reads."""
        if self.every_s is not None:
            name, size = next((n, s) for n, s in reversed(UNITS.items()) if self.every_s % s == 0)
            count = self.every_s // size
            return f"every {name}" if count == 1 else f"every {count} {name}s"
        cron = self.cron or ""
        match = _CRON_AT.fullmatch(cron)
        if not match or int(match[1]) > 59 or int(match[2]) > 23:
            return cron
        day = "daily" if match[3] == "*" else DAYS[int(match[3])]
        return f"{day} {int(match[2]):02}:{int(match[1]):02}"


def parse_when(text: str) -> When:
    """Parse a schedule.

    Args:
        text: ``every 5 minutes``, ``every hour``, ``daily 03:30``, ``sunday 03:30``, or a cron
            line of five fields.

    Raises:
        InputError: It is none of these, or more frequent than allowed.
    """
    normalised = " ".join(text.split())
    if match := _EVERY.fullmatch(normalised):
        count = int(match[1] or 1)
        unit = match[2].lower()
        seconds = count * next(size for name, size in UNITS.items() if name.startswith(unit[0]))
        if not MIN_INTERVAL_S <= seconds <= MAX_INTERVAL_S:
            raise InputError(
                f"every {count} {unit} is not between {MIN_INTERVAL_S} seconds and a year"
            )
        return When(every_s=seconds)
    if match := _AT.fullmatch(normalised):
        day, hour, minute = match[1].lower(), int(match[2]), int(match[3])
        if hour > 23 or minute > 59:
            raise InputError(f"{hour}:{minute:02} is no time of day")
        return When(cron=f"{minute} {hour} * * {DAYS.index(day) if day in DAYS else '*'}")
    if _CRON.fullmatch(normalised):
        return When(cron=normalised)
    raise InputError(f"{text!r} says no time: write {FORMS}")
