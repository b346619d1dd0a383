"""Records the model calls of writers, whatever became of the clip or window they were for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from models.chat import CallRecord, Sink
from store.database import Store
from store.queries.calls import NewCall, add_call
from store.queries.videos import hold_video


@contextmanager
def recorded(store: Store, video_id: str, clip: int) -> Iterator[Sink]:
    """A sink for the calls of one clip; stored at the end, in a transaction of their own.

    Nothing is stored of a video that was deleted meanwhile: its calls would have gone with it.
    """
    calls: list[CallRecord] = []
    try:
        yield calls.append
    finally:
        if calls:
            with store.begin() as session:
                if hold_video(session, video_id):
                    for call in calls:
                        add_call(session, NewCall(**asdict(call), video_id=video_id, clip=clip))
