"""Failures of the database, told in one line that says what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

Failure = DBAPIError | psycopg.Error
"""What SQLAlchemy raises, and psycopg itself where rows are copied past SQLAlchemy."""


def is_failure(exc: Failure) -> bool:
    """Whether the database failed, rather than refused what our own code asked of it."""
    if isinstance(exc, psycopg.Error):
        return isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError)
    return exc.connection_invalidated or isinstance(exc, OperationalError | InterfaceError)


def explain(exc: Failure, where: str) -> str:
    """One line: what failed and what to do about it. ``where`` names the database."""
    cause = exc if isinstance(exc, psycopg.Error) else exc.orig
    told = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    if isinstance(cause, errors.DiskFull):
        return f"the disk of the {where} is full ({told}): free some space and run this again"
    if isinstance(cause, errors.OutOfMemory):
        return f"the {where} is out of memory ({told}): free some and run this again"
    lost = isinstance(cause, errors.OperationalError) and not cause.sqlstate
    if lost or (isinstance(exc, DBAPIError) and exc.connection_invalidated):
        return f"the {where} cannot be reached ({told}): see that it runs, then run this again"
    return f"the {where} gave up ({told}): run this again"
