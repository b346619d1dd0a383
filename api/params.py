"""What requests share: moments of video time, and pages."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from domain.errors import InputError
from domain.time import parse_clock

LAST_S = 1e11
"""Later than any video ends."""
PAGE = 20
MOST = 100

Offset = Annotated[
    int, Query(ge=0, le=10**9, description="How many to pass over: `next` of the page before.")
]
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
Words = Annotated[
    str, Query(max_length=200, description="Only those that have these words in their title.")
]
Asked = Annotated[
    str, Query(max_length=200, description="Only those that have these words in the question.")
]
AsOf = Annotated[
    str | None,
    Query(
        max_length=40,
        description="Use only what was seen by then: seconds, MM:SS, H:MM:SS or d2 H:MM:SS.",
        examples=["12:30"],
    ),
]
Profile = Annotated[
    str | None, Query(max_length=200, description="Set of models; the server's default.")
]


class Page(BaseModel):
    """Where a page lies: ``next`` is the offset of the one after it, null at the end."""

    total: int
    offset: int
    next: int | None = Field(description="give it as `offset` to go on")


def after(offset: int, shown: int, total: int) -> int | None:
    """The offset of the next page."""
    return offset + shown if shown and offset + shown < total else None


def as_of_ms(given: str | float | None) -> int | None:
    """Milliseconds of video time of a clock or of seconds.

    Raises:
        InputError: it is no time, or later than any video ends.
    """
    if given is None:
        return None
    try:
        found = parse_clock(given) if isinstance(given, str) else _milliseconds(given)
    except ValueError as error:
        raise InputError(f"as_of: {error}") from error
    if found > LAST_S * 1000:
        raise InputError("as_of: no video is as long as that")
    return found


def _milliseconds(seconds: float) -> int:
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("seconds are 0 or more")
    return round(seconds * 1000)
