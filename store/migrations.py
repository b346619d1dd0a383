"""Migrates a database to this version's tables with Alembic, and sets up the role of viewers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import pq
from sqlalchemy import URL, Connection, create_engine, inspect, text
from sqlalchemy.exc import DataError, DBAPIError, ProgrammingError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from domain.errors import DatabaseError, SetupError
from domain.words import marked
from store.advisory_locks import MIGRATIONS, lock_until_commit
from store.driver import describe_url, driver_of, explain_failure, libpq_url, parse_url

# Alembic is imported only if there is work to do: so the newest revision is named here, and a test
# checks that it is the newest.
HEAD = "0001_4367230d"
"""The newest revision. That of 1.0.0, the baseline, ends in the SHA-256 of its SQL."""
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


# The database role of viewers, which may only read, and only what their grants show.


VIEWER_ROLE = "homer_viewer"
VIEWER = "viewer"
"""The key of ``Session.info`` with the name of the viewer."""

_MAY_BECOME = (
    "CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END"
)
"""The privilege to become a role; members of Postgres 16 and later may lack it."""
_MAKE_ROLE = f"""
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{VIEWER_ROLE}') THEN
        BEGIN
            CREATE ROLE {VIEWER_ROLE} NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- The role is the server's: another database created it meanwhile.
        END;
    END IF;
    IF NOT pg_has_role(current_user, '{VIEWER_ROLE}', {_MAY_BECOME}) THEN
        EXECUTE format('GRANT {VIEWER_ROLE} TO %I', current_user);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO {VIEWER_ROLE}', current_schema());
END $$
"""  # noqa: S608
_GRANT_SELECT = f"""
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relkind = 'r'
        AND c.relrowsecurity AND c.relnamespace = current_schema()::regnamespace
    LOOP EXECUTE format('GRANT SELECT ON %s TO {VIEWER_ROLE}', name); END LOOP;
END $$
"""  # noqa: S608


def prepare_viewer_role(connection: Connection) -> None:
    """Create the role of viewers if needed, and let it read the tables with row-level security.

    One transaction does so at a time.

    Raises:
        SetupError: the database user may not create roles; the message says what to run.
    """
    lock_until_commit(connection, MIGRATIONS)
    try:
        connection.execute(text(_MAKE_ROLE))
    except ProgrammingError as error:
        raise SetupError(
            f"the database user may not create the role {VIEWER_ROLE}: let an administrator of the "
            f"server run CREATE ROLE {VIEWER_ROLE}; GRANT {VIEWER_ROLE} TO this user"
        ) from error
    connection.execute(text(_GRANT_SELECT))


def refresh_viewer_role(connection: Connection) -> None:
    """Prepare the role of viewers if rights are enforced: the tables are new, or there are more."""
    if connection.execute(text("SELECT 1 FROM enforced_rights")).first() is not None:
        prepare_viewer_role(connection)


def restrict(connection: Connection, viewer: str) -> None:
    """Restrict the rest of a transaction to what a viewer may see.

    Raises:
        DatabaseError: the server has no role of viewers, such as after a move of the database.
    """
    settings = "SELECT set_config('homer.viewer', :viewer, true), set_config('role', :role, true)"
    try:
        connection.execute(text(settings), {"viewer": viewer, "role": VIEWER_ROLE})
    except (DataError, ProgrammingError) as error:
        raise DatabaseError(
            f"the database user may not become the role {VIEWER_ROLE}, so nobody with limited "
            "rights is shown anything: run `homer rights on` again"
        ) from error


@contextmanager
def recording(session: Session) -> Iterator[None]:
    """Write or read a record of the program's own, such as a question's, as its owner.

    In a viewer's transaction nothing restricts what is read meanwhile: return none of it to them.
    """
    viewer = session.info.get(VIEWER)
    if viewer is None:
        yield
        return
    connection = session.connection()
    connection.execute(text("SELECT set_config('role', 'none', true)"))
    session.info[VIEWER] = None
    try:
        yield
        session.flush()
    finally:
        session.info[VIEWER] = viewer
        # After an error of the database nothing more can be read: it ends with the transaction.
        status = driver_of(connection).info.transaction_status
        if status == pq.TransactionStatus.INTRANS:
            restrict(connection, viewer)
