"""Access to psycopg, the driver under SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier
from sqlalchemy import URL, Connection, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from domain.errors import DatabaseError
from domain.words import marked


def is_lost(connection: Connection) -> bool:
    """Check whether the connection is lost, even if SQLAlchemy has not noticed yet."""
    return connection.invalidated or bool(driver_of(connection).closed)


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
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


# Bulk inserts by binary COPY, at a tenth of the cost of INSERT statements.

HALFVEC = "bytea"
"""The type to send the bytes of ``pack_halfvec`` as; the column's own type reads them."""


def pack_halfvec(vector: Sequence[float] | np.ndarray[Any, Any] | None) -> bytes | None:
    """Pack a vector (D,) as pgvector's binary ``halfvec``: size, two zero bytes, 16-bit floats."""
    if vector is None:
        return None
    halves = np.asarray(vector, dtype=np.float32).astype(">f2")
    return len(halves).to_bytes(2, "big") + b"\0\0" + halves.tobytes()


def unpack_halfvecs(packed: Iterable[bytes | None]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """Unpack the results of ``halfvec_send`` to vectors (D,); None becomes an empty vector."""
    return [np.frombuffer((data or b"")[4:], dtype=">f2").astype(np.float32) for data in packed]


def allocate_ids(session: Session, table: str, count: int) -> list[int]:
    """Allocate the next ids of a table with an identity column ``id``."""
    query = "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
    return list(session.scalars(text(query), {"table": table, "count": count}))


def copy_rows(
    session: Session, table: str, types: Mapping[str, str], rows: Sequence[Sequence[Any]]
) -> None:
    """Append rows to a table within the session's transaction.

    Args:
        table: The table's name.
        types: Column to Postgres type, in the order of the rows' values.
        rows: Values; texts must not contain NUL.
    """
    if not rows:
        return
    session.flush()
    connection = driver_of(session.connection())
    columns = SQL(", ").join(map(Identifier, types))
    command = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(Identifier(table), columns)
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types(list(types.values()))
        for row in rows:
            copy.write_row(row)
