"""Watching: what files will take, what came of it, and the schedules on which folders are watched.

A schedule is an interval or a cron line, as a person writes and reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field, model_validator

from domain.base import Frozen
from domain.errors import HomerError, InputError
from domain.moments import Text
from domain.words import format_time


class Watched(Frozen):
    """What came into memory of a file or stream: ``fresh`` clips by this run, or the ``error``.

    Neither a video nor an error: the file was left alone, since its video was deleted.
    ``failure`` is the error as it was raised, for programs.
    """

    path: str
    video: Text = ""
    title: Text = ""
    clips: int = 0
    fresh: int = 0
    failed: int = 0
    error: Text = ""
    used: Text = Field(default="", description="of language models, a clip")
    ended: Text = Field(default="", description="how a stream ended")
    failure: Any = Field(default=None, exclude=True, repr=False)

    @classmethod
    def failing(cls, path: str, error: HomerError) -> Watched:
        """Return that a file or address could not be watched."""
        return cls(path=path, error=str(error), failure=error)

    @property
    def exit_code(self) -> int:
        """Return 0 when every clip is in memory, 4 when some are left, else the error's code."""
        if self.failure is not None:
            return int(self.failure.exit_code)
        return 4 if self.failed and not self.ended else 0


class IngestEstimate(Frozen):
    """What watching a file will take.

    ``images``, ``tokens_in`` and ``tokens_out`` are means of a clip, patches of the event graph
    and texts for an embeddings endpoint included. ``cost_usd`` and ``seconds`` are of all clips; no
    cost where no price is known.
    ``model_timed``: the seconds include the model's replies, as long as those on record took.
    ``error``: why it cannot be watched.
    """

    title: str
    clips: int
    images: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    model_timed: bool = True
    error: Text = ""
    exit_code: int = Field(default=0, exclude=True)

    def __str__(self) -> str:
        """Return the estimate in one line."""
        if not self.clips:
            return f"{self.title}: nothing to watch, it is in memory"
        count = f"{self.clips} clip{'s' * (self.clips != 1)}"
        tokens = self.tokens_in + self.tokens_out
        cost = "at an unknown price" if self.cost_usd is None else f"${self.cost_usd:.4f} in all"
        images = f"{self.images:.1f} images and " if self.images else ""
        used = f"{images}{tokens:,.0f} tokens a clip, {cost}" if tokens else ""
        besides = "" if self.model_timed else " besides the model's replies"
        took = f"about {format_time(round(self.seconds * 1_000))} in all{besides}"
        return f"{self.title}: {'; '.join(filter(None, [count, used, took]))}"


def sum_of(estimates: Sequence[IngestEstimate]) -> IngestEstimate:
    """Return what several files will take together."""
    clips = sum(one.clips for one in estimates)
    costs = [one.cost_usd for one in estimates]

    def mean(values: Sequence[float]) -> float:
        whole = sum(value * one.clips for value, one in zip(values, estimates, strict=True))
        return whole / clips if clips else 0.0

    return IngestEstimate(
        title="together",
        clips=clips,
        images=mean([one.images for one in estimates]),
        tokens_in=mean([one.tokens_in for one in estimates]),
        tokens_out=mean([one.tokens_out for one in estimates]),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        seconds=sum(one.seconds for one in estimates),
        model_timed=all(one.model_timed for one in estimates),
    )


class Imported(Frozen):
    """What came into memory by an import.

    ``answers`` came with an export, and ``left`` of it stay behind: they cite by numbers that are
    taken here, or videos. ``captions`` are counts by time scale, of a reference.
    """

    video: Text = ""
    title: str
    clips: int = 0
    fresh: int = 0
    failed: int = 0
    answers: int | None = Field(default=None, exclude_if=lambda count: count is None)
    left: int = Field(default=0, exclude_if=lambda count: not count)
    captions: Mapping[str, int] = Field(default={}, exclude_if=lambda counts: not counts)
    error: Text = ""

    @property
    def exit_code(self) -> int:
        """The exit code of a command: 4 where some of it is not in memory."""
        return 4 if self.error or self.failed else 0


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
