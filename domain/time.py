"""Video time: integer milliseconds from the start of the video."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

from pydantic import NonNegativeInt, model_validator

from domain.base import Frozen
from domain.words import marked

_CLOCK = re.compile(r"(?:d([1-9]\d{0,5})\s+)?((?:\d{1,9}:){0,2}\d{1,9}(?:\.\d*)?)", re.ASCII)


class TimeSpan(Frozen):
    """A half-open span ``[start_ms, end_ms)`` in milliseconds of video time."""

    start_ms: NonNegativeInt
    end_ms: NonNegativeInt

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end_ms < self.start_ms:
            raise ValueError(f"span ends ({self.end_ms} ms) before it starts ({self.start_ms} ms)")
        return self

    @classmethod
    def of(cls, start_ms: int, end_ms: int) -> TimeSpan:
        return cls(start_ms=start_ms, end_ms=end_ms)

    @property
    def length_ms(self) -> int:
        """Length in milliseconds, 0 for an instant."""
        return self.end_ms - self.start_ms

    def overlap_ms(self, other: TimeSpan) -> int:
        """Return the milliseconds shared with ``other``; 0 if they do not overlap."""
        return max(0, min(self.end_ms, other.end_ms) - max(self.start_ms, other.start_ms))

    def contains(self, other: TimeSpan) -> bool:
        """Check whether all of ``other`` is in this span."""
        return self.start_ms <= other.start_ms and other.end_ms <= self.end_ms

    def union(self, other: TimeSpan) -> TimeSpan:
        if self.contains(other):
            return self
        return TimeSpan.of(min(self.start_ms, other.start_ms), max(self.end_ms, other.end_ms))

    def __str__(self) -> str:
        return f"{format_clock(self.start_ms)}-{format_clock(self.end_ms)}"


def merge_close_spans(spans: Iterable[TimeSpan], gap_ms: int) -> list[TimeSpan]:
    """Merge spans that are at most ``gap_ms`` apart; in order."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda span: (span.start_ms, span.end_ms)):
        if merged and span.start_ms - merged[-1].end_ms <= gap_ms:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return merged


class OfVideo(Frozen):
    """Something in a video: the id and title of the video, and when it is, in the video's time."""

    video: str
    title: str = ""
    span: TimeSpan


def format_clock(ms: int) -> str:
    """Format as ``mm:ss``, ``h:mm:ss`` from one hour, ``dN h:mm:ss`` from one day (day 1 first)."""
    seconds = ms // 1000
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"d{days + 1} {hours}:{minutes:02d}:{secs:02d}"
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes:02d}:{secs:02d}"


def parse_clock(text: str) -> int:
    """Parse ``SS``, ``MM:SS``, ``H:MM:SS`` or ``dN H:MM:SS`` to milliseconds.

    Seconds may have decimals.

    Raises:
        ValueError: The text is none of these.
    """
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        problem = marked(f"{text!r} is not a time: write MM:SS, H:MM:SS or 'd2 H:MM:SS'")
        raise ValueError(problem)
    days = int(match[1] or 1) - 1
    parts = reversed(match[2].split(":"))
    total = sum(float(part) * 60.0**power for power, part in enumerate(parts))
    return round((total + days * 86_400) * 1000)


def parse_clock_span(text: str) -> TimeSpan:
    """Parse a span, ``12:30-12:50``, or a time, ``12:30``, which is taken for a second.

    Raises:
        ValueError: The text is neither.
    """
    first, _, last = text.partition("-")
    start = parse_clock(first)
    return TimeSpan.of(start, parse_clock(last) if last.strip() else start + 1_000)


def in_seconds(data: Any) -> Any:
    """Return JSON as others read it: times in seconds, and a span as its start and its end.

    ``{"span": {"start_ms": 1000, "end_ms": 2000}, "at_ms": 5}`` becomes
    ``{"start_s": 1.0, "end_s": 2.0, "at_s": 0.005}``.
    """
    if isinstance(data, list | tuple):
        return [in_seconds(one) for one in data]
    if not isinstance(data, dict):
        return data
    told = dict[str, Any]()
    for key, value in data.items():
        if key == "span" and isinstance(value, dict | None):
            told |= in_seconds(value or {"start_ms": None, "end_ms": None})
        elif key.endswith("_ms") and isinstance(value, int | float | None):
            told[f"{key[:-3]}_s"] = None if value is None else value / 1000
        else:
            told[key] = in_seconds(value)
    return told
