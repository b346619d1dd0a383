"""Which processes use the servers of a data directory, and for how long none has.

Every process that uses a server holds a shared lock on ``run/in_use.lock`` meanwhile, and the
file's modification time is the last use. A server that stops because it is idle holds the lock
exclusively for that time, so that a new process waits and then starts it again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from domain.errors import HomerError, SetupError
from store import postmaster
from store.file_locks import lock_file, try_lock_file, unlock_file
from store.files import MODULE
from store.home import Home

NAME = "in_use.lock"
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
    configured = os.environ.get(IDLE_MINUTES_VARIABLE) or _configured(home)
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


def _configured(home: Home) -> object:
    try:
        table = tomllib.loads(home.config.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return IDLE_MINUTES  # Whatever needs the file reports what is wrong with it.
    services = table.get("services")
    return (
        services.get("idle_minutes", IDLE_MINUTES) if isinstance(services, dict) else IDLE_MINUTES
    )


def _open_lock_file(home: Home) -> int:
    return os.open(home.make().run / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


# ``python -m store.idle_stop HOME``: stops the embedded Postgres when nobody uses it.
#
# One such process is started with each server and ends with it. It stops the server once it has
# been idle for the configured time, and at once when the data directory is gone.

END_WITHIN_S = 10.0


def launch_watcher(home: Home) -> None:
    """Start this process in the background; it ends with the current server."""
    code = Path(__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH")]))
    subprocess.Popen(
        [*MODULE, "store.idle_stop", str(home.root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        cwd="/",
        start_new_session=True,
    )


def watch_server(home: Home) -> None:
    """Wait until the server has ended, stopping it if it is idle or its directory is gone."""
    postmaster_process = postmaster.running_server(home.postgres)
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
