"""Locks on trajectories: only one process at a time runs one."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from psycopg import OperationalError

from domain.errors import DatabaseError
from store.queries.trajectories import claim_trajectory, is_claimed_by, release_trajectory

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg_pool import ConnectionPool

GRACE_S = 3.0
"""How long a killed process may still seem to hold its lock, in seconds."""
POLL_S = 0.05


class TrajectoryLocks:
    """Locks on trajectories over one connection of ``pool``, released with it. Thread-safe.

    ``check`` fails for a run whose lock has ended, before it writes: another process may have taken
    the trajectory since, and a database that crashed may have lost the last writes.
    """

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool
        self._held_by: dict[str, int] = {}
        self._lock = threading.Lock()
        self._connection: Connection[Any] | None = None

    def take(self, trajectory: str, grace_s: float = GRACE_S) -> bool:
        """Lock a trajectory; False if another run holds it."""
        until = time.monotonic() + grace_s
        while not self._taken(trajectory):
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True

    def give_back(self, trajectory: str) -> None:
        """Release a lock if there is one; a lost connection has released it already."""
        with self._lock, suppress(OperationalError):
            if trajectory in self._held_by:
                backend, connection = self._held_by.pop(trajectory), self._opened()
                if backend == connection.info.backend_pid:
                    release_trajectory(connection, trajectory)

    def check(self, connection: Connection[Any] | Cursor[Any], trajectory: str) -> None:
        """Check that a lock is still held; a trajectory never locked here passes.

        Raises:
            DatabaseError: the connection was lost, and the lock with it.
        """
        backend = self._held_by.get(trajectory)
        if backend is not None and not is_claimed_by(connection, trajectory, backend):
            raise DatabaseError(
                f"the database broke off while {trajectory} was answered, and its last step may be "
                f"lost; go on with: homer ask --resume {trajectory}"
            )

    def close(self) -> None:
        """Return the connection, which releases the locks."""
        with self._lock:
            self._held_by.clear()
            if self._connection is not None:
                # The pool is closed after this, and all locks are released with its connections.
                self._pool.putconn(self._connection)
                self._connection = None

    def _taken(self, trajectory: str) -> bool:
        with self._lock:
            if trajectory in self._held_by or not claim_trajectory(self._opened(), trajectory):
                return False
            self._held_by[trajectory] = self._opened().info.backend_pid
            return True

    def _opened(self) -> Connection[Any]:
        """Return the connection; a new one, without the old locks, if it was lost."""
        if self._connection is not None and self._connection.closed:
            self._pool.putconn(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = self._pool.getconn()
        return self._connection
