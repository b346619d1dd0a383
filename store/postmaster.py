"""Reads ``postmaster.pid`` and distinguishes a running server from a killed one.

A killed server may leave a pid file whose pid is gone, is an unreaped zombie, or belongs to another
program by now. Postgres itself only copes with the first.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

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
    if _usable(home.run):
        return home.run
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


def clear_folder(home: Home, folder: Path) -> None:
    """Remove a server's private folder once it is empty."""
    if folder != home.run:
        with suppress(OSError):
            folder.rmdir()


def _usable(folder: Path) -> bool:
    path = str(folder / f"{SOCKET}.lock")
    return len(os.fsencode(path)) <= LONGEST and re.fullmatch(r"[\w./-]+", path, re.A) is not None


# Running Postgres as root, which Postgres itself refuses.
#
# In order: a user namespace in which root is seen as ``nobody`` (files stay root's, nothing is
# chmodded, no user is created); where namespaces are forbidden (Docker's default), ``nobody``
# itself, with the one capability needed to enter root's folders. Otherwise without a prefix.

NOBODY = 65534
_NAMESPACE = ("unshare", "-U", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
_SETPRIV = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
_CAPABLE = (*_SETPRIV, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")


@dataclass(frozen=True, slots=True)
class UnprivilegedUser:
    """A command prefix and the user that must own the data folder."""

    prefix: tuple[str, ...]
    owner: int

    def own(self, path: Path) -> None:
        """Give ``path`` and everything in it to the owner, if it is not theirs already."""
        if path.stat().st_uid == self.owner:
            return
        for below in [path, *path.rglob("*")]:
            os.chown(below, self.owner, -1, follow_symlinks=False)


ROOT_RUNNERS = (UnprivilegedUser(_NAMESPACE, 0), UnprivilegedUser(_CAPABLE, NOBODY))


@cache
def find_runner() -> UnprivilegedUser:
    """Return the first way to run Postgres that works here.

    Raises:
        DatabaseError: This is root and none works.
    """
    if os.geteuid() != 0:
        return UnprivilegedUser((), os.geteuid())
    for runner in ROOT_RUNNERS:
        with suppress(OSError, subprocess.TimeoutExpired):
            call = [*runner.prefix, "true"]
            if not subprocess.run(call, capture_output=True, timeout=20, check=False).returncode:
                return runner
    raise DatabaseError(
        "the embedded Postgres cannot run as root here (neither unshare nor setpriv works): "
        "run homer as an ordinary user, or set HOMER_DATABASE_URL to a Postgres of yours"
    )


# Host identity: machine, boot and pid namespace of a process.
#
# Host names alone are not unique: containers of one image may share them. A process id is only
# meaningful within one pid namespace since one boot.

MACHINE = Path("/etc/machine-id")
BOOT = Path("/proc/sys/kernel/random/boot_id")
PIDS = Path("/proc/self/ns/pid")
FIRST_PIDS = "4026531836"
"""The inode of Linux's initial pid namespace (``PROC_PID_INIT_INO``)."""


class HostIdentity(NamedTuple):
    """A digest of host name and machine id, the boot id, and the pid namespace; "": unknown."""

    machine: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> Self:
        """Return the identity of this process's host."""
        name = f"{socket.gethostname()}\0{_read(MACHINE)}"
        pids = ""
        with suppress(OSError):
            pids = str(PIDS.stat().st_ino)
        return cls(hashlib.sha256(name.encode()).hexdigest()[:16], _read(BOOT), pids)

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Parse what ``str`` returned; None if it is not a host identity."""
        parts = text.split("/")
        return cls._make(parts) if len(parts) == len(cls._fields) else None

    def __str__(self) -> str:
        """Return one word, which reveals neither the host nor the machine."""
        return "/".join(self)

    def ended_before(self, now: HostIdentity) -> bool:
        """Check whether this is an earlier boot of the machine of ``now``: its processes are gone.

        False for containers: nothing is known about one that was started again.
        """
        is_initial = self.pids == now.pids == FIRST_PIDS
        return is_initial and self.machine == now.machine and self.boot != now.boot


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeError):
        return path.read_text(encoding="ascii").strip()
    return ""
