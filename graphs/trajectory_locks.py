"""Which trajectories are being run: one process at a time works on one."""

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
"""How long a process that was just killed may still seem to be at work."""
POLL_S = 0.05


class TrajectoryLocks:
    """Claims on trajectories, over one connection of ``pool``; they end with it. Thread-safe.

    ``check`` tells a run that its claim has ended, before it writes: another process may have taken
    the trajectory since, and a database that crashed may have lost what was written last.
    """

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool
        self._mine: dict[str, int] = {}
        self._lock = threading.Lock()
        self._connection: Connection[Any] | None = None

    def take(self, trajectory: str, grace_s: float = GRACE_S) -> bool:
        """Claim a trajectory; False where another run has it."""
        until = time.monotonic() + grace_s
        while not self._taken(trajectory):
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        return True

    def give_back(self, trajectory: str) -> None:
        """End a claim, if there is one. One whose connection was lost has ended with it."""
        with self._lock, suppress(OperationalError):
            if trajectory in self._mine:
                held, connection = self._mine.pop(trajectory), self._opened()
                if held == connection.info.backend_pid:
                    release_trajectory(connection, trajectory)

    def check(self, connection: Connection[Any] | Cursor[Any], trajectory: str) -> None:
        """See that a claim still holds; what was never claimed here is nobody's business.

        Raises:
            DatabaseError: its connection was lost.
        """
        backend = self._mine.get(trajectory)
        if backend is not None and not is_claimed_by(connection, trajectory, backend):
            raise DatabaseError(
                f"the database broke off while {trajectory} was answered, and its last step may be "
                f"lost; go on with: homer ask --resume {trajectory}"
            )

    def close(self) -> None:
        """Give the connection back, with which the claims end."""
        with self._lock:
            self._mine.clear()
            if self._connection is not None:
                # The pool is closed after this, and all claims end with its connections.
                self._pool.putconn(self._connection)
                self._connection = None

    def _taken(self, trajectory: str) -> bool:
        with self._lock:
            if trajectory in self._mine or not claim_trajectory(self._opened(), trajectory):
                return False
            self._mine[trajectory] = self._opened().info.backend_pid
            return True

    def _opened(self) -> Connection[Any]:
        """The connection; where it was lost, a new one, without the claims of the old."""
        if self._connection is not None and self._connection.closed:
            self._pool.putconn(self._connection)
            self._connection = None
        if self._connection is None:
            self._connection = self._pool.getconn()
        return self._connection
