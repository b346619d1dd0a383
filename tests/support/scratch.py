"""Folders in memory for the databases and files of tests, where the machine has room."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - the system's own
ROOM = 4 << 30
_NAME = "homer-tests-"


@contextmanager
def scratch(memory: Path = MEMORY, room: int = ROOM) -> Iterator[Path]:
    """A new folder in memory, or on disk where there is no such room; gone afterwards.

    Folders that killed runs left in memory go first.
    """
    fast = has_room(memory, room)
    if fast:
        for left in memory.glob(f"{_NAME}*"):
            if not Path("/proc", left.name.split("-")[2]).exists():
                shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{_NAME}{os.getpid()}-", dir=memory if fast else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def has_room(memory: Path = MEMORY, room: int = ROOM) -> bool:
    """Whether a folder in memory can be used."""
    return os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= room
