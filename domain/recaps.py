"""Recaps: documents that sum up a day or an hour of a video, with citations."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal, Self

from domain.base import Frozen
from domain.errors import InputError
from domain.texts import WORD_JOINER
from domain.time import OfVideo

PeriodKind = Literal["day", "hour"]
_LENGTH = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}

_MOMENT = r"(?:d\d+ )?[\d:]+"
_CITATION = re.compile(rf"(?<!\\)\[({_MOMENT})-({_MOMENT}), s(\d+)\]")
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_LEADING_ZERO = re.compile(r"(?<![:\d])0(\d:)")


class Period(Frozen):
    """A day or an hour by this machine's clock; ``start`` has the time zone."""

    kind: PeriodKind
    start: datetime

    @classmethod
    def at(cls, kind: PeriodKind, moment: datetime) -> Self:
        local = moment.astimezone()
        hour = 0 if kind == "day" else local.hour
        start = local.replace(hour=hour, minute=0, second=0, microsecond=0, tzinfo=None)
        return cls(kind=kind, start=start.astimezone())

    @property
    def end(self) -> datetime:
        """When it ends; a day of a change of the clocks has 23 or 25 hours."""
        if self.kind == "hour":
            return self.start + _LENGTH["hour"]
        return (self.start.replace(tzinfo=None) + _LENGTH["day"]).astimezone()

    @property
    def before(self) -> Period:
        return type(self).at(self.kind, self.start - timedelta(minutes=1))

    @property
    def name(self) -> str:
        """Its name: ``2026-11-25`` or ``2026-11-25T14``."""
        return self.start.strftime(_FORMATS[self.kind])

    @property
    def number(self) -> int:
        """Its number, counted from 1970 in hours; an hour and a day may have the same."""
        return int(self.start.timestamp() // 3600)


class Recap(OfVideo):
    """A recap of one video: the kind and name of its period, its span of video time, and its text.

    ``text`` is Markdown, without a heading.
    """

    kind: PeriodKind
    period: str
    text: str


def parse_period(kind: PeriodKind, text: str, now: datetime) -> Period:
    """Parse ``today``, ``yesterday``, ``now``, ``last``, a date, or a date with an hour.

    Raises:
        InputError: it is none of these.
    """
    current = Period.at(kind, now)
    named = {"today": current, "now": current, "yesterday": current.before, "last": current.before}
    if text in named:
        return named[text]
    try:
        return Period.at(kind, datetime.strptime(text, _FORMATS[kind]).astimezone())
    except (ValueError, OverflowError) as error:
        example = now.strftime(_FORMATS[kind])
        raise InputError(f"{text!r} is no {kind}: write it as {example}, or 'last'") from error


def linked_citations(text: str, video: str, app: str = "") -> str:
    """Return a recap in Markdown whose citations lead to the events on the video's page.

    Args:
        text: the recap as it is stored.
        app: the app's address; "": the link is for a page of the app itself.
    """
    page = f"{app}/video?video={video}"
    return _CITATION.sub(lambda found: f"[{_times(found)}]({page}&segment={found[3]})", text)


def cited_times(text: str) -> str:
    """Return a recap for a terminal: citations are times alone, and Markdown is not escaped."""
    shown = _ESCAPED.sub(r"\1", _CITATION.sub(lambda found: f"[{_times(found)}]", text))
    return shown.replace(WORD_JOINER, "")


def _times(found: re.Match[str]) -> str:
    return _LEADING_ZERO.sub(r"\1", f"{found[1]}-{found[2]}")
