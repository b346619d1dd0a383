"""Streams whose process was killed, which would count as being watched for ever."""

from __future__ import annotations

from contextlib import suppress

from domain.errors import Busy
from flows.video_locks import exclusive_lock, watched_videos
from store.database import Store
from store.queries.streams import active_streams
from store.queries.videos import DONE, set_video_state


def end_interrupted_streams(store: Store) -> list[str]:
    """Mark streams that no process watches any more as ended, and return their ids.

    The same `homer watch` resumes each later. Files need none of this: they count as paused, with
    clips left to watch.

    Raises:
        DatabaseError: the database is gone.
    """
    with store.begin() as session:
        watching = active_streams(session)
    unwatched = set(watching) - watched_videos(store) if watching else set[str]()
    return [video for video in watching if video in unwatched and _end_stream(store, video)]


def _end_stream(store: Store, video: str) -> bool:
    """Mark a stream as ended; return False if another process watches it by now."""
    with suppress(Busy), exclusive_lock(store, video, video, grace_s=0.0):
        with store.begin() as session:
            set_video_state(session, video, DONE)
        return True
    return False
