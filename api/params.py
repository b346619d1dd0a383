"""Parameters shared by requests: a time, a set of models."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import Query

from domain.errors import InputError
from domain.time import parse_clock

MAX_SECONDS = 1e11
"""Upper bound of times."""
Profile = Annotated[
    str | None, Query(max_length=200, description="Set of models; the server's default.")
]


def as_of_ms(value: str | float | None) -> int | None:
    """Convert a clock time or seconds to milliseconds of video time.

    Raises:
        InputError: it is not a time, or too large.
    """
    if value is None:
        return None
    try:
        milliseconds = parse_clock(value) if isinstance(value, str) else _milliseconds(value)
    except ValueError as error:
        raise InputError(f"as_of: {error}") from error
    if milliseconds > MAX_SECONDS * 1000:
        raise InputError("as_of: no video is that long")
    return milliseconds


def _milliseconds(seconds: float) -> int:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("seconds are 0 or more")
    # Greater ones may have no milliseconds: 1e308 times 1000 is infinite.
    return round(min(seconds, 2 * MAX_SECONDS) * 1000)
