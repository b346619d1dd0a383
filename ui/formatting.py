"""Format times, durations and sizes, and escape text from outside for Markdown."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from views.words import counted, without_markup


def format_duration(seconds: float) -> str:
    """Format a duration: ``8.2 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, secs = divmod(round(seconds), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min {secs} s"


def format_bytes(size: float) -> str:
    """Format a size in bytes: ``512 bytes``, ``3.1 MB``."""
    power = min(4, max(0, math.floor(math.log10(max(1.0, size)) / 3)))
    if power < 4 and round(size / 1000**power, min(power, 1)) >= 1000:
        power += 1  # It would be rounded to 1000 of the smaller unit.
    unit = ("bytes", "kB", "MB", "GB", "TB")[power]
    value = size / 1000**power
    return f"{value:.1f} {unit}" if power else f"{value:.0f} {unit}"


def format_usage(tokens: int, cost_usd: float) -> str:
    """Format what model calls took: ``1,200 tokens, 0.0031 US dollars``; no cost where none."""
    cost = f", {cost_usd:.4f} US dollars" if cost_usd else ""
    return f"{counted(tokens, 'token')}{cost}"


def format_date(at: datetime) -> str:
    """Format a date and time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


_JOINERS = "\u200c\u200d"
"""Joiners that some scripts and combined emoji need."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=])")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it verbatim, on one line and without links."""
    line = "".join(char if char.isprintable() or char in _JOINERS else " " for char in text).strip()
    return _SPECIAL.sub(r"\\\1", without_markup(line))
