"""Objects that a flow is given by a command which runs it in the same process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from flows.ingest_steps import Listener
from flows.ingest_video import VideoIngestion
from flows.perception_workers import WorkerPool

Held = TypeVar("Held")


class InProcess(Generic[Held]):
    """An open object as a parameter of a flow, which is neither recorded nor sent elsewhere.

    Prefect records the parameters of a run on its server, and pickles them for tasks in other
    processes. Without attributes of its own this object is recorded as its class's name, and its
    pickle is empty.
    """

    __slots__ = ("_object",)

    def __init__(self, held: Held | None) -> None:
        self._object = held

    def get(self) -> Held:
        """Return the object.

        Raises:
            RuntimeError: this is a copy in another process.
        """
        if self._object is None:
            raise RuntimeError("the flow runs only in the process of the command that starts it")
        return self._object

    def __reduce__(self) -> tuple[type[InProcess[Held]], tuple[None]]:
        return InProcess, (None,)


@dataclass(frozen=True)
class InProcessVideo:
    """An open video, the listener of its ingestion, and its perception workers."""

    ingestion: VideoIngestion
    listener: Listener
    pool: WorkerPool
