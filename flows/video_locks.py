"""The locks that show which videos are being watched by some process.

This module does not import the ingestion, so that listing the library loads no decoder or model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from domain.errors import Busy
from store.advisory_locks import claim_video, claimed_videos
from store.database import Store
from store.files import locked_paths, try_file_lock
from store.queries import videos as video_rows
from store.queries.library import LibraryEntry
from store.queries.videos import active_streams

PAUSED = "paused"


def _busy(title: str) -> Busy:
    return Busy(f"{title} is being watched by another homer: wait until it is done")


def is_watched(store: Store, video: str) -> bool:
    """Check whether some process watches a video, on this machine or another.

    The lock is only inspected, not taken, so that another process can take it meanwhile.
    """
    return video in watched_videos(store)


def watched_videos(store: Store) -> frozenset[str]:
    """Return the ids of the videos that some process watches, on this machine or another."""
    paths = locked_paths(store.home.run.glob("watch-*.lock"))
    local = frozenset(path.stem.removeprefix("watch-") for path in paths)
    with store.begin() as session:
        return local | claimed_videos(session)


def with_current_state(entry: LibraryEntry, busy: Collection[str]) -> LibraryEntry:
    """Return a video as paused if it was begun and is in none of ``busy``, the watched ids."""
    return entry.model_copy(update={"state": current_state(entry.id, entry.state, busy)})


def current_state(video: str, state: str, busy: Collection[str]) -> str:
    """Return the state of a video, given its row's ``state`` and the watched ids ``busy``."""
    return PAUSED if state == video_rows.WATCHING and video not in busy else state


@contextmanager
def exclusive_lock(
    store: Store, video: str, title: str, grace_s: float | None = None
) -> Iterator[None]:
    """Hold the locks of a video, so that one process of all machines watches it.

    The file lock is of this data directory, the database lock of all that use the database.

    Args:
        title: its name in the error.
        grace_s: how long a killed process may still seem to hold it, in seconds; None: the default.

    Raises:
        Busy: another process holds one of them.
    """
    with try_file_lock(store.home.make().run / f"watch-{video}.lock") as locked:
        if not locked:
            raise _busy(title)
        with claim_video(store, video, grace_s) as claimed:
            if not claimed:
                raise _busy(title)
            yield


def end_interrupted_streams(store: Store) -> list[str]:
    """Mark streams that no process watches any more as ended, and return their ids.

    After their process was killed they would count as being watched for ever. The same
    `homer watch` resumes each later. Files need none of this: they count as paused.

    Raises:
        DatabaseError: the database is gone.
    """
    with store.begin() as session:
        watching = active_streams(session)
    unwatched = set(watching) - watched_videos(store) if watching else set[str]()
    ended = []
    for video in (one for one in watching if one in unwatched):
        # Another process may watch it by now.
        with suppress(Busy), exclusive_lock(store, video, video, grace_s=0.0):
            with store.begin() as session:
                video_rows.set_video_state(session, video, video_rows.DONE)
            ended.append(video)
    return ended
