"""Locks on files, for where no database is open. The kernel holds them, until their process ends.

A lock belongs to an open file, so a child process that inherits the file shares the lock, and
other processes can see that there is one. The package ``filelock`` offers neither these nor shared
locks that the kernel holds.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

LOCKS = Path("/proc/locks")
"""File in which Linux lists the held locks."""

_FLOCK = re.compile(r"FLOCK .*:(\d+) ")
"""A line of it: ``12: FLOCK  ADVISORY  WRITE 4711 08:02:1234 0 EOF``, with the inode 1234."""

OpenFile = IO[Any] | int
"""An open file or its descriptor."""


def lock_file(file: OpenFile, *, shared: bool = False) -> None:
    """Lock an open file, and wait for other holders; any number can hold a ``shared`` lock."""
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock_file(file: OpenFile, *, shared: bool = False) -> bool:
    """Lock an open file unless another holder prevents it; return whether it is locked."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_file(file: OpenFile) -> None:
    """Release the lock of an open file."""
    fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a path during the block, after a wait for other holders."""
    with path.open("w") as file:
        lock_file(file)
        yield


@contextmanager
def try_file_lock(path: Path) -> Iterator[bool]:
    """Hold the exclusive lock of a path during the block; yield False if another one has it."""
    with path.open("w") as file:
        yield try_lock_file(file)


def is_locked(path: Path) -> bool:
    """Check whether some process holds the lock of a file, without taking it."""
    return bool(locked_paths([path]))


def locked_paths(paths: Iterable[Path]) -> list[Path]:
    """Return those of these files that some process has locked.

    The locks are not taken, so that another process can take them meanwhile. Empty where the system
    does not list locks.
    """
    try:
        locked = frozenset(map(int, _FLOCK.findall(LOCKS.read_text())))
    except OSError:
        locked = frozenset()
    return [path for path in paths if _inode(path) in locked]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
