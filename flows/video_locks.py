"""The locks that show which videos are being watched by some process.

This module does not import the ingestion, so that listing the library loads no decoder or model.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from domain.errors import Busy
from store.advisory_locks import claim_video, claimed_videos
from store.database import Store
from store.home import Home
from store.queries import videos as video_rows
from views.library import LibraryEntry

LOCKS = Path("/proc/locks")
"""File in which Linux lists the held locks."""

PAUSED = "paused"

_FLOCK = re.compile(r"FLOCK .*:(\d+) ")
"""A line of it: ``12: FLOCK  ADVISORY  WRITE 4711 08:02:1234 0 EOF``, with the inode 1234."""

_BUSY = "{} is being watched by another homer: wait until it is done"


def is_watched(store: Store, video: str) -> bool:
    """Check whether some process watches a video, on this machine or another.

    The lock is only inspected, not taken, so that another process can take it meanwhile.
    """
    return video in watched_videos(store)


def watched_videos(store: Store) -> frozenset[str]:
    """Return the ids of the videos that some process watches, on this machine or another."""
    locked = _locked_inodes()
    paths = (path for path in store.home.run.glob("watch-*.lock") if _inode(path) in locked)
    local = frozenset(path.stem.removeprefix("watch-") for path in paths)
    with store.begin() as session:
        return local | claimed_videos(session)


def with_current_state(entry: LibraryEntry, busy: Collection[str]) -> LibraryEntry:
    """Return a video as paused if it was begun and is in none of ``busy``, the watched ids."""
    return entry.model_copy(update={"state": current_state(entry.id, entry.state, busy)})


def current_state(video: str, state: str, busy: Collection[str]) -> str:
    """Return the state of a video, given its row's ``state`` and the watched ids ``busy``."""
    return PAUSED if state == video_rows.WATCHING and video not in busy else state


def is_locked(path: Path) -> bool:
    """Check whether some process holds the lock of a file, without taking it."""
    return _inode(path) in _locked_inodes()


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _locked_inodes() -> frozenset[int | None]:
    """Return the inodes of all locked files; empty where the system does not list them."""
    try:
        return frozenset(map(int, _FLOCK.findall(LOCKS.read_text())))
    except OSError:
        return frozenset()


def _lock_path(home: Home, video: str) -> Path:
    return home.run / f"watch-{video}.lock"


@contextmanager
def exclusive_lock(home: Home, video: str, title: str) -> Iterator[None]:
    """Hold the file lock of a video in this data directory, so that one process watches it.

    Raises:
        Busy: another process holds it.
    """
    with _lock_path(home.make(), video).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Busy(_BUSY.format(title)) from exc
        yield


@contextmanager
def exclusive_database_lock(store: Store, video: str, title: str) -> Iterator[None]:
    """Hold the database lock of a video, for all machines that use the database.

    Raises:
        Busy: another process holds it.
    """
    with claim_video(store, video) as taken:
        if not taken:
            raise Busy(_BUSY.format(title))
        yield
