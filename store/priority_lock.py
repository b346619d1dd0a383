"""Priority lock: background work yields while a user waits for something.

A user's work holds a shared Postgres advisory lock, which ends with its connection: a killed
process blocks nobody, on whichever machine it ran.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from store.locks import HELD_LOCKS

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
