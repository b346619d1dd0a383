"""Watching a folder: each file is watched once, as soon as it stops changing.

A file is recorded by its path, size and time of change. So a changed file is watched again, and is
another video by its content; a known video under another name is skipped by its content; and a
file that cannot be watched is reported once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import Busy, InputError, MediaError
from domain.words import counted
from flows.ingest_files import FileOutcome, watch_files
from flows.ingest_steps import Listener
from flows.workspace import Workspace
from perception.source import media_in, video_id
from store.database import Store
from store.queries.audit import deleted_videos
from store.queries.clips import next_clips
from store.queries.schedules import processed_items, record_processed


@dataclass(frozen=True)
class FileStamp:
    """The state of a file: ``size`` in bytes, ``changed`` in nanoseconds of the file system."""

    path: Path
    size: int
    changed: int

    @property
    def key(self) -> str:
        """Return the digest under which the file is recorded, which does not reveal its path."""
        text = f"{self.path}\0{self.size}\0{self.changed}"
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def file_stamp(path: Path) -> FileStamp | None:
    """Return the current state of a file; None if it does not exist or is empty."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return FileStamp(path.absolute(), stat.st_size, stat.st_mtime_ns) if stat.st_size else None


def media_stamps(folder: Path) -> list[FileStamp]:
    """Return the media files of a folder, at any depth, in order.

    Raises:
        InputError: the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: make it, or tell the schedule another one")
    return [stand for path in media_in(folder)[0] if (stand := file_stamp(path))]


def unchanged_files(
    files: Sequence[FileStamp], stable_s: float, wait: Callable[[float], None]
) -> list[FileStamp]:
    """Return the files that are unchanged ``stable_s`` seconds later; without any, do not wait."""
    if not files:
        return []
    wait(stable_s)
    return [file for file in files if file_stamp(file.path) == file]


def unrecorded_files(store: Store, files: Sequence[FileStamp]) -> list[FileStamp]:
    """Return the files that are not recorded in their current state."""
    with store.begin() as session:
        recorded = processed_items(session, [file.key for file in files])
    return [file for file in files if file.key not in recorded]


def watch_folder(
    workspace: Workspace,
    folder: Path,
    stable_s: float,
    listener: Listener,
    wait: Callable[[float], None],
    *,
    direct: bool = False,
) -> Iterator[FileOutcome]:
    """Watch what is new or changed in a folder, and yield the result of each file.

    Args:
        folder: it is searched at any depth.
        stable_s: seconds that a file must stay as it is.
        wait: sleeps for a number of seconds.
        direct: plain calls instead of a Prefect flow.

    Raises:
        InputError: the folder does not exist.
        SetupError: the database or a model is missing.
    """
    ready = unchanged_files(unrecorded_files(workspace.store, media_stamps(folder)), stable_s, wait)
    yield from watch_new_files(workspace, ready, listener, direct=direct)


def watch_new_files(
    workspace: Workspace, ready: Iterable[FileStamp], listener: Listener, *, direct: bool = False
) -> Iterator[FileOutcome]:
    """Watch files, and record each of them unless a later run may do better.

    A file whose video was deleted is skipped, even at another path: only a person adds it again.
    """
    for file in ready:
        if was_deleted(workspace.store, file.path):
            outcomes = iter([FileOutcome(file.path)])
        else:
            outcomes = watch_files(workspace, [file.path], listener, direct=direct)
        for outcome in outcomes:
            if is_final(workspace.store, outcome):
                with workspace.store.begin() as session:
                    record_processed(session, file.key, failure_reason(outcome))
            yield outcome


def was_deleted(store: Store, path: Path) -> bool:
    """Check whether the video of a file was deleted, and not added again, by the audit log."""
    with store.begin() as session:
        deleted = deleted_videos(session)
    try:
        return bool(deleted) and video_id(path) in deleted
    except MediaError:  # Watching it reports what is wrong with it.
        return False


def is_final(store: Store, outcome: FileOutcome) -> bool:
    """Check whether another run would have the same result."""
    if outcome.watched is None:
        return not isinstance(outcome.error, Busy)
    with store.begin() as session:
        return not next_clips(session, outcome.watched.video.id)


def failure_reason(outcome: FileOutcome) -> str | None:
    """Return the reason why a file is not completely in memory; None if it is."""
    if outcome.error is not None:
        return str(outcome.error)
    failed = outcome.watched.failed if outcome.watched else 0
    return f"{outcome.path}: {counted(failed, 'clip')} could not be watched" if failed else None
