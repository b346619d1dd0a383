"""The open video of a command, for the flow that it runs in this very process.

It is in no module of flows, whose globals go along where Prefect sends a flow elsewhere.
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
    """A video that is open already, who is told how the watching goes, and who perceives."""

    work: VideoIngestion
    listener: Listener
    crew: WorkerPool


_current: ContextVar[InProcessVideo | None] = ContextVar("at_hand", default=None)


def found() -> InProcessVideo | None:
    """What is at hand; None where the flow was begun elsewhere, as in a work pool."""
    return _current.get()


@contextmanager
def within(at_hand: InProcessVideo) -> Iterator[None]:
    """A flow that runs in here has the video at hand."""
    token = _current.set(at_hand)
    try:
        yield
    finally:
        _current.reset(token)
