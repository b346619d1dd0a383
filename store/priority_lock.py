"""Whose turn it is: what nobody waits for stands back while a person waits for something.

A person's work holds a shared advisory lock of Postgres, which ends with its connection: one whose
process is killed keeps nobody waiting, on whichever machine it ran.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from store.locks import HELD

_KIND = 0x484F5455
"""Tells these locks from all others of the database."""

_PERSON = 1

_PEOPLE = f"SELECT EXISTS (SELECT FROM {HELD} AND classid = %s AND objid = %s)"  # noqa: S608
_TAKE = "SELECT pg_advisory_lock_shared(%s, %s)"
_GIVE = "SELECT pg_advisory_unlock_shared(%s, %s)"
_STILL = "SELECT 1"


class PriorityLock:
    """The turns of one database, over a connection of its own. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        self._url, self._count, self._lock = url, 0, threading.Lock()
        self._connection: psycopg.Connection | None = None
        self._held: psycopg.Connection | None = None
        """The connection that holds our lock, which is gone with it."""

    @contextmanager
    def person(self) -> Iterator[None]:
        """In here somebody waits. Where the database goes away, nobody else is kept waiting."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def keep(self) -> None:
        """Called between two steps of a person's work: the turn is taken again if it was lost."""
        with self._lock:
            if self._count:
                self._hold()

    def people(self) -> bool:
        """Whether somebody waits, in this process or in another.

        Raises:
            psycopg.Error: the database is away.
        """
        with self._lock:
            try:
                return self._seen()
            except psycopg.OperationalError:
                # The server was started anew since: its connections are gone, and all locks.
                return self._seen()

    def close(self) -> None:
        """Gives the connection back, with which the locks end."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = self._held = None

    def _enter(self) -> None:
        with self._lock:
            self._count += 1
            self._hold()

    def _leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._held is not None:
                with suppress(psycopg.Error):  # It is gone, and the lock with it.
                    self._held.execute(_GIVE, [_KIND, _PERSON])
                self._held = None

    def _hold(self) -> None:
        """What cannot be had is left: the work itself will tell that the database is gone."""
        with suppress(psycopg.Error):
            try:
                self._take()
            except psycopg.OperationalError:
                # The server was started anew since: its connections are gone, and all locks.
                self._take()

    def _take(self) -> None:
        connection = self._opened()
        taken = connection is self._held
        connection.execute(_STILL if taken else _TAKE, None if taken else [_KIND, _PERSON])
        self._held = connection

    def _seen(self) -> bool:
        row = self._opened().execute(_PEOPLE, [_KIND, _PERSON]).fetchone()
        return bool(row and row[0])

    def _opened(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._url, autocommit=True)
        return self._connection
