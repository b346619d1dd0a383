"""SQL conditions over many values passed as one parameter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import psycopg
from pydantic_core import to_json
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Text,
    and_,
    any_,
    cast,
    literal,
    or_,
)
from sqlalchemy.orm import Session

from domain.media import ClipState
from domain.memories import Scope
from store.driver import driver_of
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
    """Return the condition that an integer column is one of ``values``."""
    # They are one array parameter, since Postgres takes at most 65 535 parameters.
    condition: ColumnElement[bool] = column == any_(cast(sorted(set(values)), ARRAY(BigInteger)))
    return condition


def is_any_text(column: Any, values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a text column is one of ``values``, which are one parameter."""
    literals = literal(text_array(sorted(set(values))), Text)
    condition: ColumnElement[bool] = column == any_(cast(literals, ARRAY(Text)))
    return condition


def text_array(values: Collection[str]) -> str:
    """Return texts as the literal of a Postgres array, to be cast to ``text[]``."""
    # psycopg takes 3 microseconds for each value of a list, which is long for every id of a
    # library.
    if any(mark in "".join(values) for mark in '\\"'):
        values = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(values) + '"}' if values else "{}"


def has_any_clip(column: Any, clips: Collection[int]) -> ColumnElement[bool]:
    """Return the condition that an array of clips has one of these."""
    overlaps: ColumnElement[bool] = column.bool_op("&&")(cast(sorted(clips), ARRAY(BigInteger)))
    return overlaps


def valid_at(row: Any, clip: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a revision (``from_clip``, ``to_clip``) is valid after ``clip``."""
    return and_(row.from_clip <= clip, or_(row.to_clip.is_(None), row.to_clip > clip))


# SQL fragments that restrict a statement to the memory in a view.
#
# A view is a list of videos, each up to a clip. Statements that join it take it as two arrays
# (``%(videos)s`` and ``%(last_clips)s``), those that check row by row as JSON
# (``%(last_clip_of)s``). Rows of its videos are those whose video is ``IN (SELECT video FROM
# view)``: ``= ANY`` of an array of thousands takes Postgres tens of milliseconds to plan.

Reader = Connection | Session
"""A connection, or a session in its transaction."""


def reading_driver(database: Reader) -> psycopg.Connection[Any]:
    """Return the psycopg connection under a connection or session."""
    return driver_of(database.connection() if isinstance(database, Session) else database)


IN_VIEW = """
    m.clip <= (%(last_clip_of)s::jsonb ->> m.video_id)::int
    AND (m.superseded_at IS NULL OR m.superseded_at > (%(last_clip_of)s::jsonb ->> m.video_id)::int)
"""
"""The condition that a memory ``m`` is in view, evaluated row by row during an index scan."""

VIEW = """
    view AS MATERIALIZED (
        SELECT video, last_clip, (ordinality - 1)::int AS number
        FROM unnest(%(videos)s::text[], %(last_clips)s::int[])
             WITH ORDINALITY AS scope (video, last_clip, ordinality))
"""
"""CTE ``view``: the scopes, numbered from 0 in the order of the parameters."""
LINES_IN_VIEW = """
    view JOIN memories AS m ON m.video_id = view.video AND m.clip <= view.last_clip
         AND (m.superseded_at IS NULL OR m.superseded_at > view.last_clip)
"""
"""FROM item: the memories ``m`` in view, joined to ``view``."""


def last_clip_of(scopes: Sequence[Scope]) -> str:
    """Return the last clip of each video as JSON, the parameter ``last_clip_of`` of ``IN_VIEW``."""
    return to_json({scope.video: scope.last_clip for scope in scopes}).decode()


def view_parameters(scopes: Sequence[Scope]) -> dict[str, Any]:
    return {
        "videos": text_array([scope.video for scope in scopes]),
        # As text too: psycopg takes long for each number of a list.
        "last_clips": "{" + ",".join(str(scope.last_clip) for scope in scopes) + "}",
    }
