"""Failures of the database, explained in one line that says what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

Failure = DBAPIError | psycopg.Error
"""Errors of SQLAlchemy, and of psycopg where rows are copied without SQLAlchemy."""


def is_database_failure(exc: Failure) -> bool:
    """Check whether the database failed, rather than rejected a statement of ours."""
    if isinstance(exc, psycopg.Error):
        return isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError)
    return exc.connection_invalidated or isinstance(exc, OperationalError | InterfaceError)


def explain_failure(exc: Failure, database: str) -> str:
    """Return one line: what failed and what to do about it. ``database`` names the database."""
    cause = exc if isinstance(exc, psycopg.Error) else exc.orig
    detail = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    if isinstance(cause, errors.DiskFull):
        return f"the disk of the {database} is full ({detail}): free some space and run this again"
    if isinstance(cause, errors.OutOfMemory):
        return f"the {database} is out of memory ({detail}): free some and run this again"
    lost = isinstance(cause, errors.OperationalError) and not cause.sqlstate
    if lost or (isinstance(exc, DBAPIError) and exc.connection_invalidated):
        return f"the {database} cannot be reached ({detail}): see that it runs, then run this again"
    return f"the {database} gave up ({detail}): run this again"
