"""Advisory locks as Postgres lists them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import scalar_row
from sqlalchemy import text
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from store.database import Store


HELD_LOCKS = """
pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""The ``FROM`` clause of held locks with two keys, in ``classid`` and ``objid``, of this database.

Locks with a single key have its halves in the same columns, and another ``objsubid``.
"""

KEY_HASH = "(CAST(hashtext({}) AS bigint) & 4294967295)"
"""The ``objid`` of a lock whose second key is ``hashtext`` of the expression put in."""


_KIND = 0x484F5455
"""The class of these advisory locks."""

_USER = 1

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
        self._enter()
        try:
            yield
        finally:
            self._leave()

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

    def _enter(self) -> None:
        with self._lock:
            self._count += 1
            self._ensure()

    def _leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._held is not None:
                with suppress(psycopg.Error):  # The lock ended with the connection.
                    self._held.execute(_RELEASE_USER, [_KIND, _USER])
                self._held = None

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
        taken = connection is self._held
        connection.execute(_PING if taken else _TAKE_USER, None if taken else [_KIND, _USER])
        self._held = connection

    def _query(self) -> bool:
        row = self._connect().execute(_IS_WAITING, [_KIND, _USER]).fetchone()
        return bool(row and row[0])

    def _connect(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True)
        return self._connection


CLAIM_CLASS = 7_202
"""The class of the advisory locks that claim videos."""
GRACE_S = 3.0
"""Seconds for which a process that was just killed may still hold its claim."""
POLL_S = 0.05

_RELEASE_CLAIM = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
_TRY_CLAIM = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_KEEPALIVE = (
    ("tcp_keepalives_idle", 30),
    ("tcp_keepalives_interval", 10),
    ("tcp_keepalives_count", 3),
)
"""In seconds and tries: the claims of an unreachable machine end after a minute."""


@contextmanager
def claim_video(store: Store, video: str, grace_s: float | None = None) -> Iterator[bool]:
    """Claim a video during the block; yield False if another process has it.

    Raises:
        DatabaseError: The database cannot be reached.
    """
    with store.explaining_failures():
        connection = psycopg.connect(store.psycopg_url, autocommit=True)
    try:
        with store.explaining_failures():
            claimed = _try_claim(connection, video, GRACE_S if grace_s is None else grace_s)
        yield claimed
        if claimed:
            # The server handles a closed connection only a moment later.
            with suppress(psycopg.Error):
                connection.execute(_RELEASE_CLAIM, (CLAIM_CLASS, video))
    finally:
        connection.close()


def _try_claim(connection: psycopg.Connection[Any], video: str, grace_s: float) -> bool:
    for name, value in _KEEPALIVE:
        connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
    deadline = time.monotonic() + grace_s
    with connection.cursor(row_factory=scalar_row) as cursor:
        while not cursor.execute(_TRY_CLAIM, (CLAIM_CLASS, video)).fetchone():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
    return True


def claimed_videos(session: Session) -> frozenset[str]:
    """Return the ids of the videos claimed by any process of any machine."""
    claimed = f"SELECT CAST(objid AS bigint) FROM {HELD_LOCKS} AND classid = :class"  # noqa: S608
    query = f"SELECT id FROM videos WHERE {KEY_HASH.format('id')} IN ({claimed})"  # noqa: S608
    return frozenset(session.execute(text(query), {"class": CLAIM_CLASS}).scalars())
