"""The folder of the embedded Postgres's Unix socket."""

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
    """Return ``run`` in the data directory, or a private folder if that path is too long.

    Paths that would need quoting in a server's settings or a url use the private folder too.

    Raises:
        DatabaseError: The private folder is another user's.
    """
    return home.run if _usable(home.run) else _private(home)


def clear_folder(home: Home, folder: Path) -> None:
    """Remove a server's private folder once it is empty."""
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
    """Check that a folder in the shared temporary directory is this user's and private."""
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not is_own or stat.S_IMODE(status.st_mode) & 0o077:
        raise DatabaseError(f"{folder} is not your own private folder: remove it")
