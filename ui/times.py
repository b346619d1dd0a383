"""Times as every page shows them: hours, minutes and seconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from domain.time import TimeSpan


def hms(ms: int) -> str:
    """``0:02:05``; from one day on ``d2 1:00:00``, where day 1 is the first."""
    days, seconds = divmod(ms // 1000, 86_400)
    minutes, secs = divmod(seconds, 60)
    told = f"{minutes // 60}:{minutes % 60:02d}:{secs:02d}"
    return f"d{days + 1} {told}" if days else told


def from_to(span: TimeSpan) -> str:
    """``0:02:05-0:02:09``; an instant is one time."""
    start, end = hms(span.start_ms), hms(span.end_ms)
    return start if start == end else f"{start}-{end}"


def lasting(seconds: float) -> str:
    """How long something takes or took: ``8.2 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, secs = divmod(round(seconds), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min {secs} s"


def room(size: float) -> str:
    """Bytes in the unit that suits: ``512 bytes``, ``3.1 MB``."""
    power = min(4, max(0, math.floor(math.log10(max(1.0, size)) / 3)))
    if power < 4 and round(size / 1000**power, min(power, 1)) >= 1000:
        power += 1  # It would be told as 1000 of the smaller unit.
    unit = ("bytes", "kB", "MB", "GB", "TB")[power]
    told = size / 1000**power
    return f"{told:.1f} {unit}" if power else f"{told:.0f} {unit}"


def moment(at: datetime) -> str:
    """A moment of the clock on the wall, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
