"""Whether the database answers: looked at once a second at most, however many ask."""

from __future__ import annotations

import asyncio

from anyio import CapacityLimiter, to_thread

from domain.errors import DatabaseError, HomerError
from store.database import Store
from telemetry.logs import log_error

FRESH_S = 1.0
"""For how long what was seen is told again."""


class DatabaseHealth:
    """One look at a time, by a thread that no other request can take; the others wait for it."""

    def __init__(self, store: Store) -> None:
        self._store, self._one = store, asyncio.Lock()
        self._seen, self._answers = float("-inf"), False

    async def answers(self) -> bool:
        """Whether the database does; why it does not is in the log."""
        async with self._one:
            if self._now() - self._seen >= FRESH_S:
                own = CapacityLimiter(1)
                self._answers = await to_thread.run_sync(_look, self._store, limiter=own)
                self._seen = self._now()
            return self._answers

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _look(store: Store) -> bool:
    try:
        with store.begin() as session:
            session.connection()
    except HomerError as error:
        if not isinstance(error, DatabaseError):
            raise
        log_error(error)
        return False
    return True
