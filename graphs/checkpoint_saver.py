"""A checkpointer that writes only the checkpoints a run may go on from, with the run's events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Cursor
from psycopg.rows import DictRow
from psycopg_pool import ConnectionPool

from domain import faults
from domain.trajectory import Event
from store.checkpoint_values import pack, unpack
from store.queries.trajectories import Mark, append_events

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

    Such steps call no model and no tool: after a crash they are done again, from the checkpoint
    before them, in no time. What they changed is written with the next checkpoint. So are events
    that are held for it: one round trip and one transaction for both.

    Args:
        pool: connections to the database.
        boundaries: the steps before which a checkpoint is written; so is the last one of a run.
        check: raises where a run may write no more, in the transaction that is to write.
    """

    def __init__(
        self, pool: ConnectionPool[Any], boundaries: Collection[str], check: Check
    ) -> None:
        super().__init__(pool, serde=PlainSerializer())
        self._check = check
        self._boundaries = frozenset(boundaries)
        self._held: dict[str, ChannelVersions] = {}
        self._written: dict[str, str] = {}
        self._told: dict[str, list[SavedEvents]] = {}
        self._putting = threading.local()

    def hold(self, thread: str, first: int, events: Sequence[Event], marks: Sequence[Mark]) -> None:
        """Keep events of a run for its next checkpoint."""
        self._told.setdefault(thread, []).append(SavedEvents(first, list(events), list(marks)))

    def release(self, thread: str) -> list[SavedEvents]:
        """The events that are held for a run's next checkpoint, which will not get them."""
        return self._told.pop(thread, [])

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        """A cursor; while a checkpoint is put, the run's events go before it."""
        thread: str | None = getattr(self._putting, "thread", None)
        with super()._cursor(pipeline=pipeline) as cursor:
            if thread is not None:
                self._check(cursor, thread)
                for told in self._told.get(thread, []):
                    append_events(cursor, thread, *told)
            yield cursor

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint, or hold back what it changed for the next that is written."""
        place = config["configurable"]
        thread = place["thread_id"]
        versions = {**self._held.get(thread, {}), **new_versions}
        if not self._is_boundary(checkpoint):
            self._held[thread] = versions
            return {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}
        parent = self._written.get(thread, place.get("checkpoint_id"))
        after: RunnableConfig = {"configurable": {**place, "checkpoint_id": parent}}
        faults.fault_point(faults.FaultPoint.CHECKPOINT_WRITING)
        self._putting.thread = thread
        try:
            made = super().put(after, checkpoint, metadata, versions)
        finally:
            self._putting.thread = None
        self._told.pop(thread, None)
        self._held.pop(thread, None)
        self._written[thread] = checkpoint["id"]
        faults.fault_point(faults.FaultPoint.CHECKPOINT_WRITTEN)
        return made

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Nothing: what a step gave is in the next checkpoint, together with its events.

        A step that a crash cut off before that is done again; calls to models are on record by
        themselves.
        """

    def _load_writes(self, writes: object) -> list[tuple[str, str, Any]]:  # noqa: ARG002
        """Nothing: none is written, so whatever is there came from elsewhere."""
        return []

    def with_allowlist(self, extra_allowlist: object) -> Self:  # noqa: ARG002
        """The same: no type is ever allowed, so there is no list to lengthen."""
        return self

    def forget(self, thread: str) -> None:
        """Drop what is held of a run that is over."""
        self._held.pop(thread, None)
        self._written.pop(thread, None)
        self._told.pop(thread, None)

    def _is_boundary(self, checkpoint: Checkpoint) -> bool:
        steps = {name.removeprefix(NEXT) for name in checkpoint["channel_values"] if NEXT in name}
        return not steps or bool(steps & self._boundaries)


class PlainSerializer(SerializerProtocol):
    """Reads and writes plain JSON types.

    LangGraph's own builds any object that the bytes name, which is to run code of whoever wrote
    them; a checkpoint may come from an import.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """A value with the name of its format.

        Raises:
            TypeError: it is not plain data.
        """
        return pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value.

        Raises:
            InputError: it is not plain data.
        """
        return unpack(*data)
