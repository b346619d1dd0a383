"""Parameters shared by requests: times, pages, filters."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from domain.errors import InputError
from domain.time import parse_clock

MAX_SECONDS = 1e11
"""Upper bound of times."""
DEFAULT_LIMIT = 20
MAX_LIMIT = 100

Offset = Annotated[
    int, Query(ge=0, le=10**9, description="Entries to skip: `next` of the page before.")
]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Entries at most.")]
QuestionQuery = Annotated[
    str, Query(max_length=200, description="Only questions with these words.")
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
    """A page of a list: ``next`` is the offset of the next page, null at the end."""

    total: int
    offset: int
    next: int | None = Field(description="pass it as `offset` for the next page")


def next_offset(offset: int, shown: int, total: int) -> int | None:
    """Return the offset of the next page, or None at the end."""
    return offset + shown if shown and offset + shown < total else None


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
