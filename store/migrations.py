"""Brings a database to this version's tables; Alembic does the work.

Alembic is imported only where there is work to do: the newest revision is named here, and a test
sees to it that it is the newest.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import URL, Connection, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from domain.errors import DatabaseError, InputError
from store.failures import explain
from store.urls import libpq_url, parse_url, shown

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0015"
COMMAND = "homer db upgrade"
PATIENCE_S = 10

_LOCK = 0x484F4D4552


def migrate(url: str) -> bool:
    """Brings the database to ``HEAD``, in one transaction; False where it is there already.

    Any number of processes may do so at once: one works, the others wait.

    Raises:
        DatabaseError: unreachable, newer than this Homer, or not ours to change.
    """
    found = parse_url(url)
    if _found(found) == HEAD:
        return False
    engine = create_engine(found, poolclass=NullPool, connect_args={"connect_timeout": PATIENCE_S})
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            return _upgrade(connection, found)
    except DBAPIError as exc:
        raise DatabaseError(_reason(exc, found)) from exc
    finally:
        engine.dispose()


def has_tables(url: str) -> bool:
    """Whether a database has tables of Homer's, of any revision.

    Raises:
        DatabaseError: unreachable.
    """
    return _found(parse_url(url)) is not None


def require_current(url: URL) -> None:
    """Passes where the database's tables are this version's.

    Raises:
        DatabaseError: unreachable, or a migration is due; the message names the command.
    """
    found = _found(url)
    if found != HEAD:
        state = f"is at revision {found}" if found else "has no tables of Homer's yet"
        raise DatabaseError(f"the {shown(url)} {state}: run `{COMMAND}` (it needs {HEAD})")


def script_folder() -> Path:
    """The migrations: beside this package in a wheel, in the source tree otherwise."""
    packaged = Path(__file__).parent / "_alembic"
    return packaged if packaged.exists() else Path(__file__).parents[1] / "alembic"


def _found(url: URL) -> str | None:
    """Asked by every command, so without an engine, which asks the server for more than this."""
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=PATIENCE_S) as connection:
            if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.Error as exc:
        raise DatabaseError(explain(exc, shown(url))) from exc
    return str(row[0]) if row else None


def revision_of(connection: Connection) -> str | None:
    """The revision of a database's tables; None where there are none of Homer's."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _upgrade(connection: Connection, url: URL) -> bool:
    before = revision_of(connection)
    if before == HEAD:
        return False
    _run_alembic(connection, before, url)
    return True


def move(connection: Connection, revision: str) -> None:
    """Brings the tables to a revision, older or newer, within the connection's transaction.

    Raises:
        InputError: this Homer does not know the revision.
    """
    from alembic import command
    from alembic.util import CommandError

    before = revision_of(connection) or ""
    try:
        config = _config(connection)
        (command.downgrade if before > revision else command.upgrade)(config, revision)
    except CommandError as exc:
        raise InputError(
            f"this Homer does not know revision {revision}: a newer one is needed"
        ) from exc


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(script_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _run_alembic(connection: Connection, before: str | None, url: URL) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = _config(connection)
    try:
        if before is not None:
            ScriptDirectory.from_config(config).get_revision(before)
        command.upgrade(config, HEAD)
    except CommandError as exc:
        raise DatabaseError(
            f"the {shown(url)} is at revision {before}, which this Homer does not know: "
            "a newer Homer made it, so install that one"
        ) from exc


def _reason(exc: DBAPIError, url: URL) -> str:
    told = str(exc.orig)
    if "extension" in told:
        return (
            f"the {shown(url)} lacks an extension ({told.splitlines()[0]}): let its administrator "
            "run CREATE EXTENSION vector; CREATE EXTENSION pg_trgm"
        )
    return explain(exc, shown(url))
