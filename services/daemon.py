"""A server that outlives the command that started it, with a file that names its process.

``HOMER_HOME/run/NAME.json`` has the process id, the start of that process (ids are reused) and its
port. A request checks that the server answers. A file lock lets one process at a time start or stop
it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from domain.errors import SetupError
from store.files import file_lock
from store.home import Home
from store.postmaster import POLL_INTERVAL_S, IdleClock

HOST = "127.0.0.1"
EVERYWHERE = {"0.0.0.0": HOST, "::": "::1"}  # noqa: S104
"""Addresses that mean every interface, and the loopback address to reach each of them."""

PATIENCE_S = 120.0
STOP_S = 15.0
ANSWER_S = 5.0
LOG_LIMIT = 10_000_000


@dataclass(frozen=True, slots=True)
class DaemonProcess:
    """A process that was started: ``began`` tells it from a later one with the same id.

    ``settings`` is the `Daemon.digest` with which the process was started.
    """

    pid: int
    began: float
    port: int
    host: str = HOST
    settings: str = ""

    @property
    def address(self) -> str:
        """Return the URL at which this machine reaches it."""
        host = EVERYWHERE.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


class Daemon:
    """One server of one data directory.

    Args:
        name: of the run file and the log.
        health: path that answers 200 when the server is ready.
        port: preferred if it is free and the run file has none; 0 is any.
        host: the address to listen on.
    """

    def __init__(self, home: Home, name: str, health: str, port: int = 0, host: str = HOST) -> None:
        self.home, self.name, self.log = home, name, home.logs / f"{name}.log"
        self.host, self._health, self._port = host, health, port
        self._file = home.run / f"{name}.json"

    def digest(self) -> str:
        """Return a digest of its configuration.

        A server that was started with another counts as not running, and is replaced by the next.
        """
        return ""

    def address(self) -> str | None:
        """Return the URL at which the server answers, or None where it does not."""
        running = self.running()
        return running.address if running and self._answers(running) else None

    def running(self) -> DaemonProcess | None:
        """Return the process, or None where it does not run."""
        running = self._read()
        is_current = running is not None and running.settings == self.digest()
        return running if is_current and _process(running) is not None else None

    def launch(self, command: Callable[[int], Sequence[str]], env: Mapping[str, str]) -> str:
        """Return the running server's URL; run ``command(port)`` if there is none.

        Raises:
            SetupError: it does not start; the message has the last line of its log.
        """
        with self._lock():
            running = self.running()
            if running and self._wait(running):
                return running.address
            self._kill()
            port = self._free_port()
            with log_file(self.log) as log:
                process = subprocess.Popen(
                    command(port),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **env},
                    cwd="/",
                    start_new_session=True,
                )
            began = psutil.Process(process.pid).create_time()
            started = DaemonProcess(process.pid, began, port, self.host, self.digest())
            partial = self._file.with_suffix(".new")
            partial.write_text(json.dumps(asdict(started)))
            partial.replace(self._file)
            if self._wait(started):
                return started.address
            self._kill()
        raise SetupError(
            f"the {self.name} server does not start ({_last_line(self.log)}); its log is {self.log}"
        )

    def stop(self) -> bool:
        """Stop the server with all its children; return False where none ran."""
        if self._read() is None:
            return False
        with self._lock():
            return self._kill()

    def _wait(self, running: DaemonProcess) -> bool:
        """Wait until the server answers; return False if it died or did not answer in time."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and _process(running) is not None:
            if self._answers(running):
                return True
            time.sleep(0.1)
        return False

    def _answers(self, running: DaemonProcess) -> bool:
        # Requests to this machine must not go through a proxy of the environment.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(running.address + self._health, timeout=ANSWER_S) as reply:
                return bool(reply.status == 200)
        except (OSError, ValueError):
            return False

    def _kill(self) -> bool:
        process = _process(self._read())
        if process is None:
            return False
        processes = [process, *process.children(recursive=True)]
        with suppress(psutil.Error):
            process.send_signal(signal.SIGTERM)
        _ended, remaining = psutil.wait_procs(processes, timeout=STOP_S)
        for survivor in remaining:
            with suppress(psutil.Error):
                survivor.kill()
        psutil.wait_procs(remaining, timeout=STOP_S)
        return True

    def _read(self) -> DaemonProcess | None:
        try:
            row = json.loads(self._file.read_text())
            host, settings = str(row["host"]), str(row["settings"])
            pid, began, port = int(row["pid"]), float(row["began"]), int(row["port"])
            return DaemonProcess(pid, began, port, host, settings)
        except (OSError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            return None

    def _free_port(self) -> int:
        previous = self._read()
        for port in (*([previous.port] if previous else []), self._port, 0):
            free = _bindable(self.host, port)
            if free:
                return free
        raise SetupError(f"no port of {self.host} can be had for the {self.name} server")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with file_lock(self.home.make().run / f"{self.name}.lock"):
            yield


def is_process_alive(running: DaemonProcess) -> bool:
    """Check whether the process that was started still runs."""
    return _process(running) is not None


def _process(running: DaemonProcess | None) -> psutil.Process | None:
    """Return the process that was started, unless it has ended."""
    if running is None:
        return None
    # A damaged file may have a number that is no process id.
    with suppress(psutil.Error, ValueError, OverflowError):
        process = psutil.Process(running.pid)
        same = abs(process.create_time() - running.began) < 1
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def _bindable(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with suppress(OSError), socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
    return 0


@contextmanager
def log_file(path: Path) -> Iterator[int]:
    """Yield a descriptor that appends to a log; start a new file when it is too long."""
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_suffix(".old"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _last_line(log: Path) -> str:
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "no output")
    return "no output"


# The end of a server process: when it has been idle for long, or its directory is gone.

STOP_TIMEOUT_S = 15.0


def stop_when_unused(home: Home, idle_s: float | None = None) -> IdleClock:
    """Stop this process when its data directory is gone, or unused for ``idle_s``.

    Args:
        idle_s: seconds without a use after which it stops; None: no limit.

    Returns:
        The clock, on which uses without a lock have to be noted.
    """
    clock = IdleClock(home)
    threading.Thread(target=_watch, args=(clock, idle_s), name="lifetime", daemon=True).start()
    return clock


def _watch(clock: IdleClock, idle_s: float | None) -> None:
    while True:
        time.sleep(POLL_INTERVAL_S)
        if clock.is_gone():
            _end()
        if idle_s is not None and clock.idle_s() > idle_s:
            with clock.unused() as free:
                if free:
                    _end()


def _end() -> None:
    """End this process as Ctrl-C would, and by force where that takes too long."""
    # The caller keeps its lock, so that others who want the server wait until it has ended.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)


# The end of a job: its process writes down its exit code; one that ended without was killed.

END = "HOMER_JOB_END"
"""Names the file into which a job's process writes its exit code."""

ACTING = "HOMER_ACTING"
"""Names the user who started a job, for the audit log; by default the user of the process."""

STOPPED = 130
"""The exit code of a process that was asked to stop."""


class JobState(StrEnum):
    """The state of a job. ``killed``: its process ended without writing down how.

    ``unknown``: it was started on another host, and it is not known whether it still runs.
    """

    WATCHING = "watching"
    DONE = "done"
    PAUSED = "paused"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"


def write_exit_code(path: Path, code: int) -> None:
    with suppress(OSError):
        path.write_text(str(code))


def write_stop_request(path: Path) -> None:
    """Write down that a job was asked to stop, unless it has ended already."""
    with suppress(OSError), path.open("x") as file:
        file.write(str(STOPPED))


def state_at_end(path: Path) -> JobState:
    """Return the state of a job whose process is gone."""
    try:
        code = int(path.read_text())
    except (OSError, ValueError):
        return JobState.KILLED
    return {0: JobState.DONE, STOPPED: JobState.PAUSED}.get(code, JobState.FAILED)
