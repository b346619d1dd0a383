"""The store: one database and one folder of blobs, opened together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from itertools import islice
from typing import Self, TypeVar

import psycopg
from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.orm import Session, configure_mappers

from domain import faults
from domain.errors import AccessDenied, DatabaseError
from domain.words import marked
from store.advisory_locks import PriorityLock
from store.blobs import BlobStore
from store.driver import (
    describe_url,
    explain_failure,
    is_database_failure,
    is_denied,
    is_lost,
    libpq_url,
    parse_url,
)
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import VIEWER, migrate, require_current, restrict
from store.postmaster import UsageLock
from store.queries.blobs import lock_blobs_exclusive, own_library_id, unused_blobs

T = TypeVar("T")

MAY_ONLY_LOOK = marked("you may look and ask here, and change nothing")
READ_CONNECTIONS = 5
"""Connections in the pool for read-only statements."""


class Store:
    """Transactions on the database, and its blobs. Safe to share between threads.

    Not usable across a fork: open another one in the child.
    """

    def __init__(self, home: Home, url: URL) -> None:
        self.home = home
        self.viewer: str | None = None
        self._url = url
        # The servers of the data directory are in use while the store is open.
        self._usage_lock = UsageLock(home)
        # Otherwise the first search would wait for this.
        configure_mappers()
        self._engine = create_engine(url, pool_pre_ping=True, pool_size=5, max_overflow=20)
        # Without pre-ping, which would be one more round trip than the query.
        self._read_engine = create_engine(
            url, isolation_level="AUTOCOMMIT", pool_size=READ_CONNECTIONS, max_overflow=0
        )

    @property
    def may_change(self) -> bool:
        """Check whether who uses this store may change the library: a viewer may not."""
        return self.viewer is None

    @property
    def url(self) -> str:
        """The SQLAlchemy url, password included: not for messages."""
        return self._url.render_as_string(hide_password=False)

    @property
    def psycopg_url(self) -> str:
        """The same database for psycopg, password included."""
        return libpq_url(self._url)

    @cached_property
    def blobs(self) -> BlobStore:
        """The blobs of this database, in a folder of their own in the data directory."""
        with self.begin() as session:
            return BlobStore(str(self.home.blobs / own_library_id(session)))

    @cached_property
    def turns(self) -> PriorityLock:
        return PriorityLock(self.psycopg_url)

    def for_viewer(self, viewer: str) -> Store:
        """Return this store as a viewer sees it: only to read, and only what is granted.

        It shares the connections of this one, which is the one to close.
        """
        if self.viewer is not None:
            raise ValueError("this store is a viewer's already")
        # Shared as well, so they have to be there.
        _ = self.blobs, self.turns
        restricted = copy(self)
        restricted.viewer = viewer
        return restricted

    @contextmanager
    def begin(self, *, snapshot: bool = False) -> Iterator[Session]:
        """Open one transaction: committed at the end, rolled back by any error.

        That of a viewer may only read, except within ``store.migrations.recording``.

        Args:
            snapshot: Every read sees the database as of the first one.

        Raises:
            DatabaseError: The server cannot be reached, is out of space, or failed; nothing was
                stored.
            AccessDenied: A viewer may not do this.
        """
        options = {"isolation_level": "REPEATABLE READ"} if snapshot else {}
        with (
            self.explaining_failures(),
            Session(self._engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            connection = session.connection(execution_options=options)
            if self.viewer is not None:
                session.info[VIEWER] = self.viewer
                restrict(connection, self.viewer)
            yield session

    def run_read_only(self, read: Callable[[Connection], T]) -> T:
        """Run read-only statements, each its own transaction: one round trip a statement.

        ``read`` must only read: it is called again if the connection turns out to be lost. A
        viewer's statements are one transaction.

        Raises:
            DatabaseError: The server cannot be reached, is out of space, or failed.
        """
        if self.viewer is not None:
            with self.begin() as session:
                return read(session.connection())
        with self.explaining_failures():
            # Every pooled connection may be lost.
            retries = READ_CONNECTIONS
            while True:
                with self._read_engine.connect() as connection:
                    try:
                        return read(connection)
                    except (DBAPIError, psycopg.Error):
                        if not retries or not is_lost(connection):
                            raise
                        connection.invalidate()
                retries -= 1

    @contextmanager
    def explaining_failures(self) -> Iterator[None]:
        """Turn failures of the database into one-line errors, also past SQLAlchemy.

        Raises:
            DatabaseError: The server cannot be reached, is out of space, failed, or has no free
                connection.
            AccessDenied: A viewer may not do this.
        """
        try:
            yield
        except NoneFree as exc:
            database = describe_url(self._url)
            raise DatabaseError(
                f"all connections to the {database} are in use: do less at a time"
            ) from exc
        except (DBAPIError, psycopg.Error) as exc:
            if self.viewer is not None and is_denied(exc):
                raise AccessDenied(MAY_ONLY_LOOK) from exc
            if not is_database_failure(exc):
                raise
            raise DatabaseError(explain_failure(exc, describe_url(self._url))) from exc

    def close(self) -> None:
        """Close the connections. The embedded server keeps running for a while."""
        self._engine.dispose()
        self._read_engine.dispose()
        if "turns" in self.__dict__:
            self.turns.close()
        self._usage_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        viewer = f", for {self.viewer}" if self.viewer is not None else ""
        return f"Store({describe_url(self._url)}, blobs in {self.home.blobs}{viewer})"


def open_store(home: Home, url: str | None = None) -> Store:
    """Open the database of ``url``, else of ``$HOMER_DATABASE_URL``, else the embedded one.

    The embedded database is started and migrated; any other must have been migrated already.

    Raises:
        DatabaseError: It cannot be reached or started, or its tables are of another version.
    """
    home.make()
    given_url = url or os.environ.get("HOMER_DATABASE_URL")
    if not given_url:
        with UsageLock(home):
            embedded_url = EmbeddedPostgres(home).start()
            migrate(embedded_url)
            return Store(home, parse_url(embedded_url))
    external_url = parse_url(given_url)
    require_current(external_url)
    return Store(home, external_url)


_BATCH = 1000


def remove_unused_blobs(store: Store, shas: Iterable[str]) -> int:
    """Remove those of ``shas`` that no video uses now; return how many.

    Call it after the transaction that deleted their rows. A process killed in between leaves files
    without rows, which ``remove_orphaned_blobs`` removes.
    """
    removed = 0
    remaining = iter(shas)
    while batch := list(islice(remaining, _BATCH)):
        with store.begin() as session:
            lock_blobs_exclusive(session)
            for sha in unused_blobs(session, batch):
                store.blobs.delete(sha)
                removed += 1
                faults.fault_point(faults.FaultPoint.BLOB_REMOVED)
    return removed


def remove_orphaned_blobs(store: Store, older_s: float = 0) -> int:
    """Remove what killed writers left: blobs without a row, and partial files.

    Args:
        older_s: Spare files written within so many seconds, for writers without a lock.

    Returns:
        The number of files removed.
    """
    # Writers hold a shared lock until their rows are committed, and this waits for all of them.
    before = time.time() - older_s
    with store.begin() as session:
        lock_blobs_exclusive(session)
        parts = store.blobs.sweep_parts(before)
    return parts + remove_unused_blobs(
        store, [sha for sha, put in store.blobs.walk() if put <= before]
    )
