"""Files and folders that only their owner can read: mode 0600 and 0700, whatever the umask.

A process sets the umask where it begins (``keep_private``), which covers what libraries write.
Where the mode matters it is given as well, since code may run in a process of somebody else's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

UMASK = 0o077
OTHERS = 0o077
"""The permission bits of the group and of everybody else."""


def keep_private() -> None:
    """From here on whatever this process and its children create is their owner's only."""
    os.umask(UMASK)


def make_private(folder: Path) -> None:
    """Makes a folder with mode 0700, its missing parents too; narrows one that is there.

    A folder of another user stays as it is, and so does one on a file system without modes.

    Raises:
        OSError: it cannot be made, or is no folder.
    """
    missing = [folder]
    while not missing[-1].parent.is_dir() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    narrow(folder)


def narrow(folder: Path) -> None:
    """Takes a folder of this user's away from group and others, where that can be done."""
    found = folder.stat()
    if found.st_mode & OTHERS and found.st_uid == os.geteuid():
        with suppress(OSError):
            folder.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def create_private(path: Path, *, append: bool = False, new: bool = False) -> int:
    """A descriptor to write a file with mode 0600; a file that is there is narrowed first.

    Args:
        path: the file; a pipe or device is written to as it is.
        append: keep what is in it.
        new: refuse what is there already, links too.

    Raises:
        OSError: it cannot be written; ``new`` and it is there.
    """
    how = os.O_EXCL if new else os.O_APPEND if append else 0
    # Emptied only once nobody else can read what will be in it.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode):
            if found.st_mode & OTHERS and found.st_uid == os.geteuid():
                with suppress(OSError):
                    os.fchmod(descriptor, 0o600)
            if not append:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_private(path: Path, *, append: bool = False, errors: str = "strict") -> TextIO:
    """A text file in UTF-8 that only its owner can read, opened to write.

    Raises:
        OSError: it cannot be written.
    """
    return os.fdopen(create_private(path, append=append), "w", encoding="utf-8", errors=errors)


@dataclass(frozen=True)
class Mended:
    """Files and folders that are their owner's only now, and those that could not be changed."""

    closed: int
    left: tuple[Path, ...]


def exposed(places: Iterable[Path]) -> Iterator[Path]:
    """What group or others may read, write or enter of these files and folders and all in them.

    Links are not followed. What goes meanwhile is passed over.
    """
    return (Path(one.folder, one.name) for one in _every(places))


def mend(places: Iterable[Path], done: Callable[[], None] = lambda: None) -> Mended:
    """Takes the permissions of group and others away from what ``exposed`` finds.

    Left as they are: links, files that have another name elsewhere (hard links), sockets, and what
    is another user's.

    Args:
        places: files and folders.
        done: called after each that was found.
    """
    closed, left = 0, list[Path]()
    for one in _every(places):
        try:
            _mend(one)
            closed += 1
        except FileNotFoundError:
            pass
        except OSError:
            left.append(Path(one.folder, one.name))
        done()
    return Mended(closed, tuple(left))


@dataclass(frozen=True)
class _Entry:
    """A name in an open folder: no link put in the way later leads anywhere else."""

    folder: str
    name: str
    at: int | None


def _mend(one: _Entry) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(one.name, flags, dir_fd=one.at)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            raise PermissionError(f"{one.name} has another name elsewhere")
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~OTHERS)
    finally:
        os.close(descriptor)


def _every(places: Iterable[Path]) -> Iterator[_Entry]:
    for place in places:
        if _is_open(_Entry("", str(place), None)):
            yield _Entry("", str(place), None)
        for folder, folders, files, at in os.fwalk(place, follow_symlinks=False):
            entries = (_Entry(folder, name, at) for name in (*folders, *files))
            yield from filter(_is_open, entries)


def _is_open(one: _Entry) -> bool:
    try:
        mode = os.stat(one.name, dir_fd=one.at, follow_symlinks=False).st_mode
    except OSError:
        return False
    return bool(mode & OTHERS) and not stat.S_ISLNK(mode)
