"""LangGraph's checkpoints in a schema of their own, beside the tables that Alembic owns."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from store.queries.trajectories import (
    CHECKPOINTS,
    add_checkpoint_schema,
    has_checkpoints,
    prune_checkpoints,
)

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver

    from store.database import Store

_OPTIONS = f"-c search_path={CHECKPOINTS} -c synchronous_commit=off"
_setup = threading.Lock()


class Checkpoints:
    """A pool of connections that savers share; each run takes a saver of its own.

    Commits do not wait for the disk: a killed process loses nothing by it, and a crash of the
    database itself costs the last moment, which the run then does again.
    """

    def __init__(self, store: Store, connections: int = 4) -> None:
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

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
            self.saver().setup()

    def saver(self) -> PostgresSaver:
        """A saver over the pool."""
        from langgraph.checkpoint.postgres import PostgresSaver

        return PostgresSaver(self._pool)

    def prune(self, trajectory: str, before: str) -> None:
        """Keep of a finished run only the checkpoints from which ``before`` starts."""
        with self._store.begin() as session:
            prune_checkpoints(session, trajectory, [before])

    def close(self) -> None:
        """Give the connections back."""
        self._pool.close()
