"""Check whether the database answers, at most once a second."""

from __future__ import annotations

import asyncio

from anyio import CapacityLimiter, to_thread

from domain.errors import DatabaseError, HomerError
from store.database import Store
from telemetry.logs import log_error

CACHE_S = 1.0
"""Seconds for which a result is reused."""


class DatabaseHealth:
    """Checks the database in a thread of its own; concurrent requests share one check."""

    def __init__(self, store: Store) -> None:
        self._store, self._check_lock = store, asyncio.Lock()
        self._checked_at, self._available = float("-inf"), False

    async def answers(self) -> bool:
        """Return whether the database answers; the log has the reason if it does not."""
        async with self._check_lock:
            if self._now() - self._checked_at >= CACHE_S:
                limiter = CapacityLimiter(1)
                self._available = await to_thread.run_sync(_check, self._store, limiter=limiter)
                self._checked_at = self._now()
            return self._available

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _check(store: Store) -> bool:
    try:
        with store.begin() as session:
            session.connection()
    except HomerError as error:
        if not isinstance(error, DatabaseError):
            raise
        log_error(error)
        return False
    return True
