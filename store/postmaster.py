"""Reads ``postmaster.pid`` and distinguishes a running server from a killed one.

A killed server may leave a pid file whose pid is gone, is an unreaped zombie, or belongs to another
program by now. Postgres itself only copes with the first.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from domain.errors import DatabaseError
from store.home import Home

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The contents of a pid file. ``status`` is starting, ready, standby or stopping."""

    pid: int
    sockets: str
    status: str


def read_pid_file(data: Path) -> Postmaster | None:
    """Read the pid file of the data folder; None if it is missing or incomplete."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return Postmaster(int(lines[0]), lines[4], lines[7].strip() if len(lines) > 7 else "")
    except (OSError, ValueError, IndexError):
        return None


def running_server(data: Path) -> Postmaster | None:
    """Read the pid file; None unless its process is running and serves this folder."""
    server = read_pid_file(data)
    return server if server and _serves_folder(server.pid, data) else None


def _serves_folder(pid: int, data: Path) -> bool:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return str(data) in process.cmdline() or _in_folder(process, data)
    except psutil.Error:
        return False


def _in_folder(process: psutil.Process, data: Path) -> bool:
    """Check for a Postgres process by its working directory, which is its data folder."""
    with suppress(psutil.Error, OSError):
        return "postgres" in process.name() and Path(process.cwd()).samefile(data)
    return False


def orphans(data: Path) -> Iterator[psutil.Process]:
    """Yield processes of the folder's server; they end some time after it was killed."""
    for process in psutil.process_iter():
        if _in_folder(process, data):
            yield process


def clear_stale(data: Path, sockets: Path) -> None:
    """Remove the files of a killed server once none of its processes is running.

    Two servers on one data folder would destroy it, so a surviving process is waited for, then
    killed. A pid file whose pid is gone is left to Postgres, which replaces it after its own check
    for survivors.
    """
    if not wait_until(lambda: not any(orphans(data)), 5):
        for process in orphans(data):
            with suppress(psutil.Error):
                process.kill()
        wait_until(lambda: not any(orphans(data)), 10)
    server = read_pid_file(data)
    if server is None or psutil.pid_exists(server.pid):
        for leftover in (data / "postmaster.pid", sockets / f"{SOCKET}.lock", sockets / SOCKET):
            leftover.unlink(missing_ok=True)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until ``condition()`` is true; return False after that many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


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
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not is_own or stat.S_IMODE(status.st_mode) & 63:
        raise DatabaseError(f"{folder} is not your own private folder: remove it")
    return folder
