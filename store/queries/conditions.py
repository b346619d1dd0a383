"""SQL conditions over many values passed as one parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Text, and_, any_, cast, literal, or_

from domain.media import ClipState
from store.tables.videos import ClipRow

MAX_ATTEMPTS = 3
"""A clip that failed this often is not retried, unless explicitly requested."""


def is_waiting() -> ColumnElement[bool]:
    """Return the condition that a clip has only local lines until the next run has it written."""
    return and_(ClipRow.unwritten, ClipRow.attempts < MAX_ATTEMPTS)


def is_left() -> ColumnElement[bool]:
    """Return the condition that a clip failed, or has only local lines until the next run."""
    return or_(ClipRow.state == ClipState.FAILED, is_waiting())


def is_any_of(column: Any, values: Iterable[int]) -> ColumnElement[bool]:
    """Return the condition that an integer column is one of ``values``.

    They are one array parameter, since Postgres takes at most 65 535 parameters.
    """
    condition: ColumnElement[bool] = column == any_(cast(sorted(set(values)), ARRAY(BigInteger)))
    return condition


def is_any_text(column: Any, values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a text column is one of ``values``, which are one parameter."""
    literals = literal(text_array(sorted(set(values))), Text)
    condition: ColumnElement[bool] = column == any_(cast(literals, ARRAY(Text)))
    return condition


def text_array(values: Collection[str]) -> str:
    """Return texts as the literal of a Postgres array, to be cast to ``text[]``.

    psycopg takes 3 microseconds for each value of a list, which is long for every id of a library.
    """
    if any(mark in "".join(values) for mark in '\\"'):
        values = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(values) + '"}' if values else "{}"


def valid_at(row: Any, clip: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a revision (``from_clip``, ``to_clip``) is valid after ``clip``."""
    return and_(row.from_clip <= clip, or_(row.to_clip.is_(None), row.to_clip > clip))
