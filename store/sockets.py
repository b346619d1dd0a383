"""Where the Unix socket of the embedded Postgres lies."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from domain.errors import DatabaseError
from store.home import Home
from store.postmaster import SOCKET

# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the last of them zero.
LONGEST = 103


def socket_folder(home: Home) -> Path:
    """``run`` in the data directory, or a private folder where that path is too long.

    Names that would need quoting in a server's settings or a url go to the private folder too.

    Raises:
        DatabaseError: the private folder is another user's.
    """
    return home.run if _usable(home.run) else _private(home)


def clear_folder(home: Home, folder: Path) -> None:
    """Takes a server's private folder away once nothing lies in it."""
    if folder != home.run:
        with suppress(OSError):
            folder.rmdir()


def _usable(folder: Path) -> bool:
    path = str(folder / f"{SOCKET}.lock")
    return len(os.fsencode(path)) <= LONGEST and re.fullmatch(r"[\w./-]+", path, re.A) is not None


def _private(home: Home) -> Path:
    digest = hashlib.sha256(os.fsencode(home.root.resolve())).hexdigest()[:16]
    name = f"homer-{os.geteuid()}-{digest}"
    folder = Path(tempfile.gettempdir()) / name
    if not _usable(folder):
        folder = Path("/tmp") / name  # noqa: S108
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_private(folder)
    return folder


def _check_private(folder: Path) -> None:
    """The system's temporary folder is open to all: refuse what another user put there."""
    found = folder.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or stat.S_IMODE(found.st_mode) & 0o077:
        raise DatabaseError(f"{folder} is not your own private folder: remove it")
