"""LangGraph's checkpoints in a schema of their own, beside the tables that Alembic owns."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from store.queries.trajectories import (
    CHECKPOINTS,
    add_checkpoint_schema,
    has_checkpoints,
)

if TYPE_CHECKING:
    from store.database import Store

_OPTIONS = f"-c search_path={CHECKPOINTS} -c synchronous_commit=off"
_setup = threading.Lock()


class Checkpoints:
    """The checkpoints of all runs on one store, over a pool of connections. Thread-safe.

    Commits do not wait for the disk: a killed process loses nothing by it, and a crash of the
    database itself costs the last moment, which the run then does again.
    """

    def __init__(self, store: Store, boundaries: Collection[str], connections: int = 4) -> None:
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        from graphs.saver import BoundarySaver

        self._store = store
        settings: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": 0,
            "row_factory": dict_row,
            "options": _OPTIONS,
        }
        with _setup:
            self._make_schema()
        self._pool: ConnectionPool[Any] = ConnectionPool(
            store.psycopg_url, min_size=1, max_size=connections, kwargs=settings, open=True
        )
        self.saver = BoundarySaver(self._pool, boundaries)
        with _setup:
            self._make_tables()

    def _make_schema(self) -> None:
        with self._store.begin() as session:
            add_checkpoint_schema(session)

    def _make_tables(self) -> None:
        """LangGraph's own migrations, run where they are behind."""
        with self._store.begin() as session:
            ready = has_checkpoints(session)
        if not ready:
            self.saver.setup()

    def close(self) -> None:
        """Give the connections back."""
        self._pool.close()
