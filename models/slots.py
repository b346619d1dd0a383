"""Slots that limit how many processes of this machine do something at a time.

Each slot is a locked file in the system's temporary folder, so that of a killed process is free
again at once.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from domain.errors import SetupError
from store.files import try_lock_file

POLL_INTERVAL_S = 0.05


class NoFreeSlot(TimeoutError):
    """No slot was free in time."""


class Slots:
    """The slots of one name.

    Args:
        name: All who use the same name share its slots.
        count: How many there are; None: no limit.
        folder: Where the files are; None: this user's, in the temporary folder.
    """

    def __init__(self, name: str, count: int | None, folder: Path | None = None) -> None:
        self._count = count
        self._folder = folder or Path(tempfile.gettempdir(), f"homer-{os.getuid()}")
        self._name = hashlib.sha256(name.encode()).hexdigest()[:16]

    @contextmanager
    def acquire(
        self, timeout_s: float | None = None, wait: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Hold a slot, waiting until one is free.

        Args:
            timeout_s: How long to wait; None: for ever.

        Raises:
            NoFreeSlot: None was free in time.
            SetupError: The folder is not this user's own.
        """
        with ExitStack() as held:
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while self._count is not None and not self._try_slots(held):
                if deadline is not None and time.monotonic() >= deadline:
                    raise NoFreeSlot
                wait(POLL_INTERVAL_S)
            yield

    def _try_slots(self, held: ExitStack) -> bool:
        # Make the folder; one that others may write to is not trusted.
        folder = self._folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SetupError(f"{folder} is not yours alone: remove it, or name another in $TMPDIR")
        for number in range(self._count or 0):
            path = self._folder / f"{self._name}-{number}.lock"
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(path, flags, 0o600), "r+")
            if try_lock_file(file):
                held.enter_context(file)
                return True
            file.close()
        return False
