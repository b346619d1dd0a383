"""Watching a folder: a file is taken once it stays as it is, and dealt with once.

Dealt with is a file by where it lies, its size and when it was changed. So a changed file is looked
at again, and is another video by its content; a known video under another name is passed over by
its content; and a file that cannot be watched is told once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import Busy, InputError, MediaError
from flows.ingest_files import FileOutcome, watch_files
from flows.ingest_steps import Listener
from flows.workspace import Workspace
from perception.source import media_in, video_id
from store.database import Store
from store.queries.audit import deleted_videos
from store.queries.clips import next_clips
from store.queries.schedules import take, taken_of


@dataclass(frozen=True)
class Stand:
    """How a file lies there: ``size`` in bytes, ``changed`` in nanoseconds of the file system."""

    path: Path
    size: int
    changed: int

    @property
    def key(self) -> str:
        """The name under which it is on record, which tells nobody what it was."""
        told = f"{self.path}\0{self.size}\0{self.changed}"
        return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()


def stand_of(path: Path) -> Stand | None:
    """How a file lies there now; None where it is gone, or where nothing is in it yet."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Stand(path.absolute(), found.st_size, found.st_mtime_ns) if found.st_size else None


def stands(folder: Path) -> list[Stand]:
    """The media files of a folder, at any depth, in order.

    Raises:
        InputError: the folder is not there.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: make it, or tell the schedule another one")
    return [found for path in media_in(folder) if (found := stand_of(path))]


def settled(found: Sequence[Stand], stable_s: float, wait: Callable[[float], None]) -> list[Stand]:
    """Those that lie there unchanged ``stable_s`` seconds later; no time passes for none."""
    if not found:
        return []
    wait(stable_s)
    return [one for one in found if stand_of(one.path) == one]


def not_taken(store: Store, found: Sequence[Stand]) -> list[Stand]:
    """Those that were not dealt with as they lie there."""
    with store.begin() as session:
        known = taken_of(session, [one.key for one in found])
    return [one for one in found if one.key not in known]


def watch_folder(
    desk: Workspace,
    folder: Path,
    stable_s: float,
    listener: Listener,
    wait: Callable[[float], None],
    *,
    direct: bool = False,
) -> Iterator[FileOutcome]:
    """Watches what is new or changed in a folder, giving what became of each file.

    Args:
        desk: the store and the models.
        folder: it is searched at any depth.
        stable_s: seconds that a file must stay as it is.
        listener: is told how it goes.
        wait: lets so many seconds pass.
        direct: plain calls instead of a Prefect flow.

    Raises:
        InputError: the folder is not there.
        SetupError: the database or a model is missing.
    """
    ready = settled(not_taken(desk.store, stands(folder)), stable_s, wait)
    yield from watch_once(desk, ready, listener, direct=direct)


def watch_once(
    desk: Workspace, ready: Iterable[Stand], listener: Listener, *, direct: bool = False
) -> Iterator[FileOutcome]:
    """Watches files, each noted as dealt with unless another run may do better.

    One whose video was deleted is left alone, wherever it lies by now: only a person adds it again.
    """
    for one in ready:
        if was_deleted(desk.store, one.path):
            found = iter([FileOutcome(one.path)])
        else:
            found = watch_files(desk, [one.path], listener, direct=direct)
        for outcome in found:
            if is_final(desk.store, outcome):
                with desk.store.begin() as session:
                    take(session, one.key, why(outcome))
            yield outcome


def was_deleted(store: Store, path: Path) -> bool:
    """Whether the video of a file was deleted, as the audit log has it, and not added since."""
    with store.begin() as session:
        gone = deleted_videos(session)
    try:
        return bool(gone) and video_id(path) in gone
    except MediaError:  # Whoever is about to watch it tells what is wrong with it.
        return False


def is_final(store: Store, outcome: FileOutcome) -> bool:
    """Whether another run would come to the same."""
    if outcome.watched is None:
        return not isinstance(outcome.error, Busy)
    with store.begin() as session:
        return not next_clips(session, outcome.watched.video.id)


def why(outcome: FileOutcome) -> str | None:
    """Why a file is not in memory as a whole; None: it is."""
    if outcome.error is not None:
        return str(outcome.error)
    failed = outcome.watched.failed if outcome.watched else 0
    return f"{outcome.path}: {failed} clips could not be watched" if failed else None
