"""Migrates a database to this version's tables with Alembic.

Alembic is imported only if there is work to do: the newest revision is named here, and a test
checks that it is the newest.
"""

from __future__ import annotations

from pathlib import Path

import psycopg
from sqlalchemy import URL, Connection, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from domain.errors import DatabaseError
from domain.marked import marked
from store.advisory_locks import MIGRATIONS, lock_until_commit
from store.driver import describe_url, explain_failure, libpq_url, parse_url
from store.viewers import refresh_viewer_role

HEAD = "0001_4367230d"
"""Until 1.0 the baseline is rewritten in place: this ends in the SHA-256 of its SQL, shortened."""
COMMAND = "homer db upgrade"
PATIENCE_S = 10


def migrate(url: str) -> bool:
    """Migrate the database to ``HEAD`` in one transaction; return False if it is there already.

    Any number of processes may call this at once: one works, the others wait.

    Raises:
        DatabaseError: Unreachable, newer than this version, or not permitted.
    """
    target = parse_url(url)
    if _fetch_revision(target) == HEAD:
        return False
    engine = create_engine(target, poolclass=NullPool, connect_args={"connect_timeout": PATIENCE_S})
    try:
        with engine.begin() as connection:
            lock_until_commit(connection, MIGRATIONS)
            revision = revision_of(connection)
            if revision == HEAD:
                return False
            _run_alembic(connection, revision, target)
            refresh_viewer_role(connection)
            return True
    except DBAPIError as exc:
        problem = str(exc.orig)
        if "extension" in problem:
            told = marked(
                f"the {describe_url(target)} lacks an extension ({problem.splitlines()[0]}): let "
                "its administrator run CREATE EXTENSION vector; CREATE EXTENSION pg_trgm"
            )
        else:
            told = explain_failure(exc, describe_url(target))
        raise DatabaseError(told) from exc
    finally:
        engine.dispose()


def has_tables(url: str) -> bool:
    """Check whether a database has Homer's tables, of any revision.

    Raises:
        DatabaseError: Unreachable.
    """
    return _fetch_revision(parse_url(url)) is not None


def require_current(url: URL) -> None:
    """Check that the database's tables are of this version.

    Raises:
        DatabaseError: Unreachable, or a migration is due; the message names the command.
    """
    revision = _fetch_revision(url)
    if revision != HEAD:
        todo = f"run `{COMMAND}` (it needs {HEAD})"
        if revision:
            raise DatabaseError(f"the {describe_url(url)} is at revision {revision}: {todo}")
        raise DatabaseError(f"the {describe_url(url)} has no tables of Homer's yet: {todo}")


def script_folder() -> Path:
    """Return the folder of the migrations: in this package in a wheel, else in the source tree."""
    packaged = Path(__file__).parent / "_alembic"
    return packaged if packaged.exists() else Path(__file__).parents[1] / "alembic"


def _fetch_revision(url: URL) -> str | None:
    """Fetch the revision, without an engine: its set-up would cost every command more queries."""
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=PATIENCE_S) as connection:
            if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.Error as exc:
        raise DatabaseError(explain_failure(exc, describe_url(url))) from exc
    return str(row[0]) if row else None


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database's tables; None if it has none of Homer's."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if revision is None else str(revision)


def _run_alembic(connection: Connection, before: str | None, url: URL) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(script_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        if before is not None:
            ScriptDirectory.from_config(config).get_revision(before)
        command.upgrade(config, HEAD)
    except CommandError as exc:
        raise DatabaseError(
            f"the {describe_url(url)} is at revision {before}, which this Homer does not know: "
            "another version of Homer made it, so open it with that one, or name another "
            "HOMER_HOME or database and watch the videos again"
        ) from exc
