"""How many may do a thing at a time on this machine, in whichever processes they are.

Each place is a locked file of the system's temporary folder, so one whose process is killed is
free again at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from domain.errors import SetupError

POLL_INTERVAL_S = 0.05


class NoFreeSlot(TimeoutError):
    """No place was free in time."""


class Slots:
    """Places for one thing.

    Args:
        name: of the thing; all who name it alike share its places.
        count: how many there are; None: as many as are asked for.
        folder: where the files are; None: this user's, in the temporary folder.
    """

    def __init__(self, name: str, count: int | None, folder: Path | None = None) -> None:
        self._count = count
        self._folder = folder or Path(tempfile.gettempdir(), f"homer-{os.getuid()}")
        self._name = hashlib.sha256(name.encode()).hexdigest()[:16]

    @contextmanager
    def acquire(
        self, within_s: float | None = None, wait: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Holds a place, once one is free.

        Args:
            within_s: how long to wait for it; None: for ever.
            wait: lets so many seconds pass.

        Raises:
            NoFreeSlot: none was free in time.
            SetupError: the folder is not this user's own.
        """
        with ExitStack() as held:
            until = None if within_s is None else time.monotonic() + within_s
            while self._count is not None and not self._take(held):
                if until is not None and time.monotonic() >= until:
                    raise NoFreeSlot
                wait(POLL_INTERVAL_S)
            yield

    def _take(self, held: ExitStack) -> bool:
        _make(self._folder)
        for number in range(self._count or 0):
            path = self._folder / f"{self._name}-{number}.lock"
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(path, flags, 0o600), "r+")
            if _locked(file):
                held.enter_context(file)
                return True
            file.close()
        return False


def _make(folder: Path) -> None:
    """Makes the folder; one that others may write to is not trusted."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise SetupError(f"{folder} is not yours alone: remove it, or name another in $TMPDIR")


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
