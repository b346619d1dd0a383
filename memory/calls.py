"""Records the model calls of writers, whatever became of the clip or window they were for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from models.chat import CallRecord, Sink
from store.database import Store
from store.queries.calls import NewCall, add_call


@contextmanager
def recorded(store: Store, video_id: str, clip: int) -> Iterator[Sink]:
    """A sink for the calls of one clip; stored at the end, in a transaction of their own."""
    calls: list[CallRecord] = []
    try:
        yield calls.append
    finally:
        if calls:
            with store.begin() as session:
                for call in calls:
                    add_call(session, NewCall(**asdict(call), video_id=video_id, clip=clip))
