"""The records that a run stores at every step: LangGraph's checkpoints and its own events.

The checkpoints have a schema of their own, separate from the tables that Alembic manages.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from domain.trajectory import Event
from graphs.checkpoint_saver import BoundarySaver
from store.advisory_locks import CHECKPOINT_SCHEMA, TrajectoryLocks, try_lock, unlock
from store.queries.trajectories import (
    CHECKPOINTS,
    Mark,
    add_checkpoint_schema,
    append_events,
    checkpoint_level,
    omit_checkpoint_statistics,
    own_schema,
)

if TYPE_CHECKING:
    from store.database import Store

PATIENCE_S = 10.0
"""How long to wait for a connection before the database counts as unreachable, in seconds."""

POLL_S = 0.05


def make_checkpoint_tables(store: Store) -> None:
    """Create or migrate LangGraph's tables."""
    Checkpoints(store, ()).close()


class Checkpoints:
    """The checkpoints of all runs on one store, over a pool of connections. Thread-safe.

    Commits do not wait for the disk. A killed process loses nothing by it; a crash of the database
    itself loses the last moment, which the run then repeats: the crash releases the run's lock,
    without which nothing is written.
    """

    def __init__(self, store: Store, boundaries: Collection[str], connections: int = 5) -> None:
        self._store = store
        settings: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
        }
        with store.begin() as session:
            schema = own_schema(session)
        settings["options"] = f"-c search_path={CHECKPOINTS},{schema} -c synchronous_commit=off"
        self._pool: ConnectionPool[Any] = ConnectionPool(
            store.psycopg_url,
            min_size=2,
            max_size=connections,
            kwargs=settings,
            check=ConnectionPool.check_connection,
            timeout=PATIENCE_S,
            open=True,
        )
        self.claims = TrajectoryLocks(self._pool)
        self.saver = BoundarySaver(self._pool, boundaries, self.claims.check)
        if self._is_behind():
            self._make_tables()

    def _is_behind(self) -> bool:
        with self._store.begin() as session:
            return checkpoint_level(session) < len(self.saver.MIGRATIONS) - 1

    def _make_tables(self) -> None:
        """Run LangGraph's own migrations if needed, in one process at a time.

        They build indexes, which wait for every open transaction: so a waiting process holds none
        open, and polls instead.
        """
        with self._store.explaining_failures(), self._pool.connection() as connection:
            while not try_lock(connection, CHECKPOINT_SCHEMA):
                time.sleep(POLL_S)
            try:
                if self._is_behind():
                    with self._store.begin() as session:
                        add_checkpoint_schema(session)
                    self.saver.setup()
                    with self._store.begin() as session:
                        omit_checkpoint_statistics(session)
            finally:
                unlock(connection, CHECKPOINT_SCHEMA)

    def append(
        self, trajectory: str, first: int, events: Sequence[Event], marks: Sequence[Mark] = ()
    ) -> None:
        """Append events to a trajectory now, after those buffered for a checkpoint."""
        with self._pool.connection() as connection, connection.transaction():
            self.claims.check(connection, trajectory)
            for buffered in self.saver.release(trajectory):
                append_events(connection, trajectory, *buffered)
            append_events(connection, trajectory, first, events, marks)

    def hold(
        self, trajectory: str, first: int, events: Sequence[Event], marks: Sequence[Mark] = ()
    ) -> None:
        """Buffer events of a trajectory for its next checkpoint."""
        self.saver.hold(trajectory, first, events, marks)

    def close(self) -> None:
        """Close the connections."""
        self.claims.close()
        self._pool.close()
