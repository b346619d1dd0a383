"""Records the model calls that a video's memory takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from domain.calls import CallRecord
from models.text_endpoint import recorded_embeddings
from store.database import Store
from store.queries.calls import add_call
from store.queries.videos import protect_video


def record_call(store: Store, video_id: str, clip: int | None, call: CallRecord) -> None:
    """Store a call of a video's memory at once, unless the video was deleted meanwhile.

    ``clip``: None if it is for no single clip.
    """
    with store.begin() as session:
        if protect_video(session, video_id):
            add_call(session, replace(call, video_id=video_id, clip=clip))


@contextmanager
def embeddings_recorded_after(store: Store, video_id: str) -> Iterator[None]:
    """Record the requests to an embeddings endpoint that are made within, once it ends or fails.

    For what deletes calls on record: those of the deletion itself are not among them.
    """
    calls: list[CallRecord] = []
    try:
        with recorded_embeddings(calls.append):
            yield
    finally:
        for call in calls:
            record_call(store, video_id, None, call)
