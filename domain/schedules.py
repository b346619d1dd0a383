"""When something is done again and again: in words, as a person writes it and reads it back."""

from __future__ import annotations

import re
from typing import Self

from pydantic import model_validator

from domain.base import Frozen
from domain.errors import InputError

LEAST_S = 10
"""Nothing is done more often: a run takes longer than that to begin."""

MOST_S = 366 * 86_400

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""As cron counts them, from 0."""

_EVERY = re.compile(r"every (?:(\d{1,8}) ?)?(second|minute|hour|day|[smhd])s?", re.IGNORECASE)
_AT = re.compile(rf"(daily|{'|'.join(DAYS)})(?: at)? (\d\d?):(\d\d)", re.IGNORECASE)
_CRON = re.compile(r"\S+( \S+){4}")
_CRON_AT = re.compile(r"(\d\d?) (\d\d?) \* \* (\*|[0-6])")

FORMS = "'every 5 minutes', 'daily 03:30', 'sunday 03:30' or a cron line of five fields"


class When(Frozen):
    """Every so many seconds, or when a cron line says, by this machine's clock."""

    every_s: int | None = None
    cron: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("it is either an interval or a cron line")
        if self.every_s is not None and not LEAST_S <= self.every_s <= MOST_S:
            raise ValueError(f"it is between {LEAST_S} seconds and a year")
        return self

    def __str__(self) -> str:
        """In words that ``parse_when`` reads."""
        if self.every_s is not None:
            return _in_words(self.every_s)
        return _at_in_words(self.cron or "")


def parse_when(text: str) -> When:
    """When something is to be done.

    Args:
        text: ``every 5 minutes``, ``every hour``, ``daily 03:30``, ``sunday 03:30``, or a cron
            line of five fields.

    Raises:
        InputError: it is none of these, or more often than can be done.
    """
    plain = " ".join(text.split())
    if found := _EVERY.fullmatch(plain):
        return _every(int(found[1] or 1), found[2].lower())
    if found := _AT.fullmatch(plain):
        return _at(found[1].lower(), int(found[2]), int(found[3]))
    if _CRON.fullmatch(plain):
        return When(cron=plain)
    raise InputError(f"{text!r} says no time: write {FORMS}")


def _every(count: int, unit: str) -> When:
    seconds = count * next(size for name, size in UNITS.items() if name.startswith(unit[0]))
    if not LEAST_S <= seconds <= MOST_S:
        raise InputError(f"every {count} {unit} is not between {LEAST_S} seconds and a year")
    return When(every_s=seconds)


def _at(day: str, hour: int, minute: int) -> When:
    if hour > 23 or minute > 59:
        raise InputError(f"{hour}:{minute:02} is no time of day")
    return When(cron=f"{minute} {hour} * * {DAYS.index(day) if day in DAYS else '*'}")


def _in_words(seconds: int) -> str:
    name, size = next((n, s) for n, s in reversed(UNITS.items()) if seconds % s == 0)
    count = seconds // size
    return f"every {name}" if count == 1 else f"every {count} {name}s"


def _at_in_words(cron: str) -> str:
    found = _CRON_AT.fullmatch(cron)
    if not found or int(found[1]) > 59 or int(found[2]) > 23:
        return cron
    day = "daily" if found[3] == "*" else DAYS[int(found[3])]
    return f"{day} {int(found[2]):02}:{int(found[1]):02}"
