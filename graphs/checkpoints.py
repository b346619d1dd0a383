"""The records that a run stores at every step: LangGraph's checkpoints and its own events.

The checkpoints have a schema of their own, separate from the tables that Alembic manages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Cursor
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from domain import faults
from domain.trajectory import Event
from store.advisory_locks import CHECKPOINT_SCHEMA, TrajectoryLocks, try_lock, unlock
from store.checkpoint_values import pack_value, unpack_value
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


# A checkpointer that writes only the checkpoints a run may resume from, with the run's events.

NEXT = "branch:to:"
"""LangGraph's channels that name the next step."""


Check = Callable[[Cursor[Any], str], None]


class SavedEvents(NamedTuple):
    """Events of a run, numbered from ``first``."""

    first: int
    events: Sequence[Event]
    marks: Sequence[Mark]


class BoundarySaver(PostgresSaver):
    """Postgres checkpoints, without those before steps that only compute.

    Such steps call no model and no tool: after a crash they are quickly repeated from the
    checkpoint before them. Their changes are written with the next checkpoint, and so are the
    events buffered for it: one round trip and one transaction for both.

    Args:
        pool: connections to the database.
        boundaries: the steps before which a checkpoint is written; so is the last one of a run.
        check: called in each writing transaction; raises if the run may not write any more.
    """

    def __init__(
        self, pool: ConnectionPool[Any], boundaries: Collection[str], check: Check
    ) -> None:
        super().__init__(pool, serde=PlainSerializer())
        self._check = check
        self._boundaries = frozenset(boundaries)
        self._buffered_versions: dict[str, ChannelVersions] = {}
        self._last_written: dict[str, str] = {}
        self._buffered_events: dict[str, list[SavedEvents]] = {}
        self._putting = threading.local()

    def hold(self, thread: str, first: int, events: Sequence[Event], marks: Sequence[Mark]) -> None:
        """Buffer events of a run for its next checkpoint."""
        self._buffered_events.setdefault(thread, []).append(
            SavedEvents(first, list(events), list(marks))
        )

    def release(self, thread: str) -> list[SavedEvents]:
        """Remove and return the events buffered for a run's next checkpoint."""
        return self._buffered_events.pop(thread, [])

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """Open a cursor; before a checkpoint is put, write the run's buffered events."""
        thread: str | None = getattr(self._putting, "thread", None)
        with super()._cursor(pipeline=pipeline) as cursor:
            if thread is not None:
                self._check(cursor, thread)
                for buffered in self._buffered_events.get(thread, []):
                    append_events(cursor, thread, *buffered)
            yield cursor

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint, or buffer its changes for the next one that is written."""
        configurable = config["configurable"]
        thread = configurable["thread_id"]
        versions = {**self._buffered_versions.get(thread, {}), **new_versions}
        steps = {name.removeprefix(NEXT) for name in checkpoint["channel_values"] if NEXT in name}
        is_boundary = not steps or bool(steps & self._boundaries)
        if not is_boundary:
            self._buffered_versions[thread] = versions
            return {"configurable": {**configurable, "checkpoint_id": checkpoint["id"]}}
        parent = self._last_written.get(thread, configurable.get("checkpoint_id"))
        after: RunnableConfig = {"configurable": {**configurable, "checkpoint_id": parent}}
        faults.fault_point(faults.FaultPoint.CHECKPOINT_WRITING)
        self._putting.thread = thread
        try:
            written_config = super().put(after, checkpoint, metadata, versions)
        finally:
            self._putting.thread = None
        self._buffered_events.pop(thread, None)
        self._buffered_versions.pop(thread, None)
        self._last_written[thread] = checkpoint["id"]
        faults.fault_point(faults.FaultPoint.CHECKPOINT_WRITTEN)
        return written_config

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write nothing: a step's output is in the next checkpoint, with its events.

        A step interrupted before that is repeated; model calls are recorded separately.
        """

    def _load_writes(self, writes: object) -> list[tuple[str, str, Any]]:  # noqa: ARG002
        """Load nothing: none is written, so any that exist came from elsewhere."""
        return []

    def with_allowlist(self, extra_allowlist: object) -> Self:  # noqa: ARG002
        """Return self: no type is ever allowed, so there is no list to extend."""
        return self

    def forget(self, thread: str) -> None:
        """Drop the buffers of a finished run."""
        self._buffered_versions.pop(thread, None)
        self._last_written.pop(thread, None)
        self._buffered_events.pop(thread, None)


class PlainSerializer(SerializerProtocol):
    """Serializes plain JSON types.

    LangGraph's own serializer builds any object that the bytes name, which would run foreign code:
    a checkpoint may come from an import.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value, with the name of its format.

        Raises:
            TypeError: the value is not plain data.
        """
        return pack_value(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value.

        Raises:
            InputError: the value is not plain data.
        """
        return unpack_value(*data)


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
