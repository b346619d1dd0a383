"""The advisory locks of the database: every key, and what takes, releases and inspects locks.

A lock taken with `try_claim` ends with its connection, so with its process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import sqlalchemy
from psycopg.rows import scalar_row
from psycopg_pool import ConnectionPool
from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.errors import DatabaseError
from store.postmaster import wait_until

if TYPE_CHECKING:
    from store.database import Store

MIGRATIONS, BLOBS = 0x484F4D4552, 0x424C4F42
"""Locks with a single key. That of a video's writes has the key `video_key`."""

TRAJECTORIES, VIDEOS, ENCODERS = 7_201, 7_202, 7_203
"""Classes of the locks that claim a trajectory or a video by its id, or the text encoder."""

_PRIORITY, _USER = 0x484F5455, 1
"""The class and the key of the priority lock."""

GRACE_S = 3.0
"""Seconds for which a process that was just killed may still hold its claim."""

HELD_LOCKS = """
pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""The ``FROM`` clause of held locks with two keys, in ``classid`` and ``objid``, of this database.

Locks with a single key have its halves in the same columns, and another ``objsubid``.
"""

_KEY_HASH = "(CAST(hashtext({}) AS bigint) & 4294967295)"
"""The ``objid`` of a lock whose second key is ``hashtext`` of the expression put in."""

_CLAIM = HELD_LOCKS + " AND classid = {} AND objid = " + _KEY_HASH
_TRY_CLAIM = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_RELEASE_CLAIM = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
# In seconds and tries: the claims of an unreachable machine end after a minute.
_KEEPALIVE = (
    ("tcp_keepalives_idle", 30),
    ("tcp_keepalives_interval", 10),
    ("tcp_keepalives_count", 3),
)


def lock_until_commit(
    session: Session | sqlalchemy.Connection, key: int, *, shared: bool = False
) -> None:
    """Wait for a lock, and hold it until the transaction ends."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    session.execute(text(f"SELECT {function}(:key)"), {"key": key})


def video_key(video_id: str) -> int:
    """Return the key of the lock on the writes of a video."""
    return int.from_bytes(bytes.fromhex(video_id)[:8], "big", signed=True)


def try_claim(connection: psycopg.Connection[Any], kind: int, name: str) -> bool:
    """Claim what has this id until the connection closes; return False if another one has it."""
    return _call(connection, _TRY_CLAIM, kind, name)


def release_claim(connection: psycopg.Connection[Any], kind: int, name: str) -> bool:
    """Release a claim; return False if there was none."""
    return _call(connection, _RELEASE_CLAIM, kind, name)


def _call(connection: psycopg.Connection[Any], query: LiteralString, *key: object) -> bool:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute(query, key).fetchone())


def claimed_condition(kind: int, name: str) -> str:
    """Return the SQL condition that some connection claims what ``name``, an expression, names."""
    return f"EXISTS (SELECT FROM {_CLAIM.format(kind, name)})"


_IS_WAITING = f"SELECT EXISTS (SELECT FROM {HELD_LOCKS} AND classid = %s AND objid = %s)"  # noqa: S608
_TAKE_USER = "SELECT pg_advisory_lock_shared(%s, %s)"
_RELEASE_USER = "SELECT pg_advisory_unlock_shared(%s, %s)"
_PING = "SELECT 1"


class PriorityLock:
    """The priority lock of one database, on its own connection. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        self._url, self._count, self._lock = url, 0, threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._held: psycopg.Connection | None = None
        """The connection that holds our lock; the lock ends with it."""

    @contextmanager
    def person(self) -> Iterator[None]:
        """Hold the lock while a user waits.

        If the database goes away, nobody else is blocked.
        """
        with self._lock:
            self._count += 1
            self._ensure()
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if self._count == 0 and self._held is not None:
                    with suppress(psycopg.Error):  # The lock ended with the connection.
                        self._held.execute(_RELEASE_USER, [_PRIORITY, _USER])
                    self._held = None

    def keep(self) -> None:
        """Take the lock again if it was lost; call it between two steps of a user's work."""
        with self._lock:
            if self._count:
                self._ensure()

    def people(self) -> bool:
        """Check whether a user waits, in this process or another.

        Raises:
            psycopg.Error: The database cannot be reached.
        """
        with self._lock:
            try:
                return self._query()
            except psycopg.OperationalError:
                # The server was restarted: its connections and all locks are gone.
                return self._query()

    def close(self) -> None:
        """Close the connection, which releases the locks."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = self._held = None

    def _ensure(self) -> None:
        """Take the lock if possible; if the database is gone, the work itself will report that."""
        with suppress(psycopg.Error):
            try:
                self._take()
            except psycopg.OperationalError:
                # The server was restarted: its connections and all locks are gone.
                self._take()

    def _take(self) -> None:
        connection = self._connect()
        is_held = connection is self._held
        connection.execute(
            _PING if is_held else _TAKE_USER, None if is_held else [_PRIORITY, _USER]
        )
        self._held = connection

    def _query(self) -> bool:
        row = self._connect().execute(_IS_WAITING, [_PRIORITY, _USER]).fetchone()
        return bool(row and row[0])

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True)
        return self._connection


@contextmanager
def claim_video(store: Store, video: str, grace_s: float | None = None) -> Iterator[bool]:
    """Claim a video during the block; yield False if another process has it.

    Raises:
        DatabaseError: The database cannot be reached.
    """
    with _claim(store, VIDEOS, video, grace_s) as claimed:
        yield claimed


@contextmanager
def claim_encoder(store: Store) -> Iterator[bool]:
    """Claim the library's text encoder during the block; yield False if another process changes it.

    Raises:
        DatabaseError: The database cannot be reached.
    """
    with _claim(store, ENCODERS, "library") as claimed:
        yield claimed


@contextmanager
def _claim(store: Store, kind: int, name: str, grace_s: float | None = None) -> Iterator[bool]:
    with store.explaining_failures():
        connection = psycopg.connect(store.psycopg_url, autocommit=True)
    try:
        with store.explaining_failures():
            grace_s = GRACE_S if grace_s is None else grace_s
            for setting, value in _KEEPALIVE:
                connection.execute("SELECT set_config(%s, %s, false)", (setting, str(value)))
            claimed = wait_until(lambda: try_claim(connection, kind, name), grace_s)
        yield claimed
        if claimed:
            # The server handles a closed connection only a moment later.
            with suppress(psycopg.Error):
                release_claim(connection, kind, name)
    finally:
        connection.close()


def claimed_videos(session: Session) -> frozenset[str]:
    """Return the ids of the videos claimed by any process of any machine."""
    claimed = f"SELECT CAST(objid AS bigint) FROM {HELD_LOCKS} AND classid = :class"  # noqa: S608
    query = f"SELECT id FROM videos WHERE {_KEY_HASH.format('id')} IN ({claimed})"  # noqa: S608
    return frozenset(session.execute(text(query), {"class": VIDEOS}).scalars())


PATIENCE_S = 10.0
"""How long to wait for a connection before the database counts as unreachable, in seconds."""


# Commits do not wait for the disk: a killed process loses nothing by it, and a crash of the
# database itself releases the lock and loses the last moment, which the run then repeats.
class TrajectoryLocks:
    """Locks on trajectories over one connection, and the connections of those who write them.

    ``writing`` fails for a run whose lock has ended: another process may have taken the trajectory
    since, and a database that crashed may have lost the last writes. Thread-safe.
    """

    def __init__(self, store: Store) -> None:
        self._pool: ConnectionPool[Any] = ConnectionPool(
            store.psycopg_url,
            min_size=2,
            max_size=5,
            kwargs={
                "autocommit": True,
                "prepare_threshold": 0,
                "options": "-c synchronous_commit=off",
            },
            check=ConnectionPool.check_connection,
            timeout=PATIENCE_S,
            open=True,
        )
        self._held_by: dict[str, int] = {}
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def writing(self, trajectory: str) -> Iterator[psycopg.Connection[Any]]:
        """Open a transaction in which to write a trajectory.

        Raises:
            DatabaseError: the lock was lost with its connection.
        """
        with self._pool.connection() as connection, connection.transaction():
            self.check(connection, trajectory)
            yield connection

    def take(self, trajectory: str, grace_s: float = GRACE_S) -> bool:
        """Lock a trajectory; False if another run holds it."""
        return wait_until(lambda: self._taken(trajectory), grace_s)

    def give_back(self, trajectory: str) -> None:
        """Release a lock if there is one; a lost connection has released it already."""
        with self._lock, suppress(psycopg.OperationalError):
            if trajectory in self._held_by:
                backend, connection = self._held_by.pop(trajectory), self._opened()
                if backend == connection.info.backend_pid:
                    release_claim(connection, TRAJECTORIES, trajectory)

    def check(
        self, connection: psycopg.Connection[Any] | psycopg.Cursor[Any], trajectory: str
    ) -> None:
        """Check that a lock is still held; a trajectory never locked here passes.

        Raises:
            DatabaseError: the connection was lost, and the lock with it.
        """
        backend = self._held_by.get(trajectory)
        if backend is None:
            return
        claim = _CLAIM.format(TRAJECTORIES, "%s::text")
        query = f"SELECT pid FROM {claim} AND pid = %s"  # noqa: S608
        if not connection.execute(query, (trajectory, backend)).fetchall():
            raise DatabaseError(
                f"the database broke off while {trajectory} was answered, and its last step may be "
                f"lost; go on with: homer resume {trajectory}"
            )

    def close(self) -> None:
        """Close the connections, which releases the locks."""
        with self._lock:
            self._held_by.clear()
            if self._connection is not None:
                self._pool.putconn(self._connection)
                self._connection = None
            self._pool.close()

    def _taken(self, trajectory: str) -> bool:
        with self._lock:
            if trajectory in self._held_by or not try_claim(
                self._opened(), TRAJECTORIES, trajectory
            ):
                return False
            self._held_by[trajectory] = self._opened().info.backend_pid
            return True

    def _opened(self) -> psycopg.Connection[Any]:
        """Return the connection; a new one, without the old locks, if it was lost."""
        if self._connection is not None and self._connection.closed:
            self._pool.putconn(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = self._pool.getconn()
        return self._connection
