"""Which videos some process watches at this moment, and the locks that tell.

Apart from watching itself, which decodes and perceives: listing the library does neither.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from domain.errors import Busy
from store.database import Store
from store.home import Home
from store.queries import videos as video_rows
from store.video_claims import claim_video, claimed_videos
from views.library import LibraryEntry

LOCKS = Path("/proc/locks")
"""Where Linux lists the locks that are held."""

PAUSED = "paused"

_FLOCK = re.compile(r"FLOCK .*:(\d+) ")
"""A line of it: ``12: FLOCK  ADVISORY  WRITE 4711 08:02:1234 0 EOF``, with the inode 1234."""

_BUSY = "{} is being watched by another homer: wait until it is done"


def is_watched(store: Store, video: str) -> bool:
    """Whether some process watches a video, on this machine or another.

    The lock is only looked at: whoever is about to begin finds it free.
    """
    return video in watched_now(store)


def watched_now(store: Store) -> frozenset[str]:
    """The ids of the videos that some process watches, on this machine or another."""
    locked = _locked()
    found = (path for path in store.home.run.glob("watch-*.lock") if _inode(path) in locked)
    here = frozenset(path.stem.removeprefix("watch-") for path in found)
    with store.begin() as session:
        return here | claimed_videos(session)


def as_it_stands(entry: LibraryEntry, busy: Collection[str]) -> LibraryEntry:
    """A video that was begun and that nothing watches is paused, as after a kill; ``busy``: ids."""
    return entry.model_copy(update={"state": state_now(entry.id, entry.state, busy)})


def state_now(video: str, state: str, busy: Collection[str]) -> str:
    """How a video stands whose row says ``state``; ``busy``: ids of those that are watched."""
    return PAUSED if state == video_rows.WATCHING and video not in busy else state


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of a file; it is only looked at."""
    return _inode(path) in _locked()


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _locked() -> frozenset[int | None]:
    """The inodes of all files whose lock some process holds; none where none can tell."""
    try:
        return frozenset(map(int, _FLOCK.findall(LOCKS.read_text())))
    except OSError:
        return frozenset()


def _lock_of(home: Home, video: str) -> Path:
    return home.run / f"watch-{video}.lock"


@contextmanager
def alone(home: Home, video: str, title: str) -> Iterator[None]:
    """One process at a time watches a video of this data directory."""
    with _lock_of(home.make(), video).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Busy(_BUSY.format(title)) from exc
        yield


@contextmanager
def claimed(store: Store, video: str, title: str) -> Iterator[None]:
    """The same for all machines that use the database."""
    with claim_video(store, video) as taken:
        if not taken:
            raise Busy(_BUSY.format(title))
        yield
