"""Access to psycopg, the driver under SQLAlchemy."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError

from domain.errors import DatabaseError
from domain.marked import marked


def is_lost(connection: Connection) -> bool:
    """Check whether the connection is lost, even if SQLAlchemy has not noticed yet."""
    return connection.invalidated or bool(driver_of(connection).closed)


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Return psycopg's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine's only driver
    return driver


Failure = DBAPIError | psycopg.Error
"""Errors of SQLAlchemy, and of psycopg where rows are copied without SQLAlchemy."""


def is_database_failure(exc: Failure) -> bool:
    """Check whether the database failed, rather than rejected a statement of ours."""
    if isinstance(exc, psycopg.Error):
        return isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError)
    return exc.connection_invalidated or isinstance(exc, OperationalError | InterfaceError)


def is_denied(exc: Failure) -> bool:
    """Check whether the database denied the statement to its role."""
    cause = exc if isinstance(exc, psycopg.Error) else exc.orig
    return isinstance(cause, errors.InsufficientPrivilege)


def explain_failure(exc: Failure, database: str) -> str:
    """Return one line: what failed and what to do about it. ``database`` names the database."""
    cause = exc if isinstance(exc, psycopg.Error) else exc.orig
    detail = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    if isinstance(cause, errors.DiskFull):
        return marked(
            f"the disk of the {database} is full ({detail}): free some space and run this again"
        )
    if isinstance(cause, errors.OutOfMemory):
        return marked(f"the {database} is out of memory ({detail}): free some and run this again")
    lost = isinstance(cause, errors.OperationalError) and not cause.sqlstate
    if lost or (isinstance(exc, DBAPIError) and exc.connection_invalidated):
        return marked(
            f"the {database} cannot be reached ({detail}): see that it runs, then run this again"
        )
    return marked(f"the {database} gave up ({detail}): run this again")


_DRIVERS = {"postgres", "postgresql", "postgresql+psycopg"}


def parse_url(text: str) -> URL:
    """Parse a user's url to one for psycopg 3.

    Raises:
        DatabaseError: It is not a Postgres url. The message does not repeat it, since it may hold a
            password.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in _DRIVERS or not url.database:
        raise DatabaseError(
            "HOMER_DATABASE_URL is not a Postgres url: write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    return url.set(drivername="postgresql+psycopg")


def libpq_url(url: URL) -> str:
    """Return the url for psycopg and other users of libpq, password included."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def describe_url(url: URL) -> str:
    """Describe the database for messages, without password and options."""
    hosts = url.query.get("host", url.host)
    host = hosts if isinstance(hosts, str) else ",".join(hosts or ("localhost",))
    server = f"{host}:{url.port}" if url.port else host
    return marked(f"database {url.database} on {server}")
