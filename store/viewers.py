"""The database role of viewers, which may only read, and only what their grants show.

Row-level security hides rows from this role. The owner of the tables is not
subject to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import pq
from sqlalchemy import Connection, text
from sqlalchemy.exc import DataError, ProgrammingError
from sqlalchemy.orm import Session

from domain.errors import DatabaseError, SetupError
from store.advisory_locks import MIGRATIONS, lock_until_commit
from store.driver import driver_of

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
