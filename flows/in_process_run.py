"""The open video of a command, for the flow that it runs in the same process.

It is not in a module that defines flows: Prefect sends the globals of such a module along with a
flow to other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from flows.ingest_steps import Listener
from flows.ingest_video import VideoIngestion
from flows.perception_workers import WorkerPool


@dataclass(frozen=True)
class InProcessVideo:
    """An open video, the listener of its ingestion, and its perception workers."""

    ingestion: VideoIngestion
    listener: Listener
    pool: WorkerPool


_current: ContextVar[InProcessVideo | None] = ContextVar("in_process_video", default=None)


def found() -> InProcessVideo | None:
    """Return the current video; None where the flow was started elsewhere, as in a work pool."""
    return _current.get()


@contextmanager
def within(current: InProcessVideo) -> Iterator[None]:
    """Make a video the current one for flows that run in this block."""
    token = _current.set(current)
    try:
        yield
    finally:
        _current.reset(token)
