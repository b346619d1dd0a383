"""Streams whose process was killed: they would count as being watched for ever."""

from __future__ import annotations

from contextlib import suppress

from domain.errors import Busy
from flows.video_locks import alone, watched_now
from store.database import Store
from store.queries.streams import streams_begun
from store.queries.videos import DONE, set_video_state
from store.video_claims import claim_video


def settle_streams(store: Store) -> list[str]:
    """Marks streams that nobody watches any more as ended, and returns their ids.

    The same `homer watch` goes on with each later. Files need none of this: they are paused, and
    clips of theirs are left to be watched.

    Raises:
        DatabaseError: the database is gone.
    """
    with store.begin() as session:
        begun = streams_begun(session)
    left = set(begun) - watched_now(store) if begun else set[str]()
    return [one for one in begun if one in left and _settled(store, one)]


def _settled(store: Store, video: str) -> bool:
    """Marks one as ended; False where somebody took it up meanwhile."""
    with suppress(Busy), alone(store.home, video, video), claim_video(store, video, 0.0) as ours:
        if ours:
            with store.begin() as session:
                set_video_state(session, video, DONE)
        return ours
    return False
