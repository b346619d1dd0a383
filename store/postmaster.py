"""The servers of a data directory: running or killed, used by whom, and stopped when idle.

A killed server may leave a pid file whose pid is gone, is an unreaped zombie, or belongs to another
program by now. Postgres itself only copes with the first.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

import psutil

from domain.errors import DatabaseError, HomerError, SetupError
from store.files import MODULE, lock_file, try_lock_file, unlock_file
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
    if server is None:
        return None
    try:
        process = psutil.Process(server.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        serves = str(data) in process.cmdline() or _in_folder(process, data)
    except psutil.Error:
        return None
    return server if serves else None


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
    """Remove the files of a killed server once none of its processes is running."""
    # Two servers on one data folder would destroy it, so a surviving process is waited for, then
    # killed. A pid file whose pid is gone is left to Postgres, which replaces it after its own
    # check for survivors.
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

    Raises:
        DatabaseError: The private folder is another user's.
    """
    # Paths that would need quoting in a server's settings or a url use the private folder too.
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
        """Check whether this is an earlier boot of that machine: its processes are gone."""
        # False for containers: nothing is known about one that was started again.
        is_initial = self.pids == now.pids == FIRST_PIDS
        return is_initial and self.machine == now.machine and self.boot != now.boot


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeError):
        return path.read_text(encoding="ascii").strip()
    return ""


# Every process that uses a server holds a shared lock on this file meanwhile, and the file's
# modification time is the last use. A server that stops because it is idle holds the lock
# exclusively for that time, so that a new process waits and then starts it again.
IN_USE = "in_use.lock"
IDLE_MINUTES = 15.0
IDLE_MINUTES_VARIABLE = "HOMER_IDLE_MINUTES"
POLL_INTERVAL_S = 2.0
"""Seconds between two checks of the data directory and its lock."""


class UsageLock:
    """A shared lock on a data directory's servers; the kernel releases it when the process ends."""

    _file = -1

    def __init__(self, home: Home) -> None:
        self._file = _open_lock_file(home)
        lock_file(self._file, shared=True)
        os.utime(self._file)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._file >= 0:
            os.utime(self._file)
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        """Release a lock that was dropped without being released."""
        if self._file >= 0:
            os.close(self._file)

    def __enter__(self) -> UsageLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class IdleClock:
    """Detects that a data directory is gone, and measures how long nobody has used it."""

    def __init__(self, home: Home) -> None:
        self._home, self._file = home, _open_lock_file(home)
        self._folder, self._last_busy = home.run.stat().st_ino, time.time()

    def is_gone(self) -> bool:
        """Check whether the data directory was deleted, moved or replaced."""
        try:
            return self._home.run.stat().st_ino != self._folder
        except OSError:
            return True

    def touch(self) -> None:
        """Record a use now."""
        os.utime(self._file)

    def idle_s(self) -> float:
        """Return the seconds since the last use; 0 while a process holds the lock."""
        if self._in_use():
            self._last_busy = time.time()
        # A clock that was set back must not keep a server running for ever.
        last_use = min(time.time(), max(self._last_busy, os.fstat(self._file).st_mtime))
        return time.time() - last_use

    def _in_use(self) -> bool:
        """Check whether a process holds the lock; one that stops a server holds it exclusively."""
        if not try_lock_file(self._file, shared=True):
            return False
        with self.unused() as free:
            return not free

    @contextmanager
    def unused(self) -> Iterator[bool]:
        """Hold the lock exclusively, so that no use begins; yield False if there is one."""
        if not try_lock_file(self._file):
            unlock_file(self._file)
            yield False
            return
        try:
            yield True
        finally:
            unlock_file(self._file)


def idle_limit_s(home: Home) -> float | None:
    """Return the seconds after which idle servers stop; None: never.

    ``$HOMER_IDLE_MINUTES``, else ``idle_minutes`` under ``[services]`` in ``homer.toml``, else 15;
    0 means never.

    Raises:
        SetupError: It is not a number of minutes.
    """
    configured: object = os.environ.get(IDLE_MINUTES_VARIABLE) or None
    if configured is None:
        # Whatever needs a file that cannot be read reports what is wrong with it.
        with suppress(OSError, ValueError, RecursionError):
            services = tomllib.loads(home.config.read_text(encoding="utf-8")).get("services")
            configured = services.get("idle_minutes") if isinstance(services, dict) else None
    if configured is None:
        configured = IDLE_MINUTES
    try:
        minutes = float(str(configured))
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes < float("inf"):
        raise SetupError(
            f"{configured!r} is no number of minutes: set {IDLE_MINUTES_VARIABLE}, "
            f"or idle_minutes under [services] in {home.config}, to 0 (never stop) or more"
        )
    return 60 * minutes or None


def _open_lock_file(home: Home) -> int:
    return os.open(home.make().run / IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


# ``python -m store.postmaster HOME``: stops the embedded Postgres when nobody uses it.
#
# One such process is started with each server and ends with it. It stops the server once it has
# been idle for the configured time, and at once when the data directory is gone.

END_WITHIN_S = 10.0


def launch_watcher(home: Home) -> None:
    """Start this process in the background; it ends with the current server."""
    code = Path(__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH")]))
    subprocess.Popen(
        [*MODULE, "store.postmaster", str(home.root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        cwd="/",
        start_new_session=True,
    )


def watch_server(home: Home) -> None:
    """Wait until the server has ended, stopping it if it is idle or its directory is gone."""
    postmaster_process = running_server(home.postgres)
    if postmaster_process is None:
        return None
    server = psutil.Process(postmaster_process.pid)
    clock, limit = IdleClock(home), idle_limit_s(home)
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        if clock.is_gone():
            return kill_server(server)
        if limit is not None and clock.idle_s() > limit:
            with clock.unused() as free:
                if free:
                    # It imports this module, to launch the watcher.
                    from store.embedded import EmbeddedPostgres

                    EmbeddedPostgres(home).stop()
                    return None
        time.sleep(POLL_INTERVAL_S)
    return None


def kill_server(server: psutil.Process) -> None:
    """End a server whose files are gone: two signals, then kill it with its children."""
    processes = [server, *server.children(recursive=True)]
    for signal_number in (signal.SIGINT, signal.SIGQUIT):
        with suppress(psutil.Error):
            server.send_signal(signal_number)
        if not psutil.wait_procs(processes, timeout=END_WITHIN_S)[1]:
            return
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    with suppress(psutil.Error, HomerError, OSError):
        watch_server(Home(Path(sys.argv[1])))
