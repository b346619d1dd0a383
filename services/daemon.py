"""A server that outlives the command that started it: found again by a file, checked by a request.

``HOMER_HOME/run/NAME.json`` holds the process id, when that process began (ids are reused) and
its port. A file lock lets one process at a time start or stop it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from domain.errors import SetupError
from store.home import Home

HOST = "127.0.0.1"
EVERYWHERE = {"0.0.0.0": HOST, "::": "::1"}  # noqa: S104
"""Addresses that stand for all of this machine's, and one of those that each stands for."""

PATIENCE_S = 120.0
STOP_S = 15.0
ANSWER_S = 5.0
LOG_LIMIT = 10_000_000


@dataclass(frozen=True, slots=True)
class Running:
    """A process that was started: ``began`` tells it from a later one with the same id.

    ``settings`` is what `Daemon` was given when it was started.
    """

    pid: int
    began: float
    port: int
    host: str = HOST
    settings: str = ""

    @property
    def address(self) -> str:
        """Where this machine reaches it."""
        host = EVERYWHERE.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


class Daemon:
    """One server of one data directory.

    Args:
        home: the data directory.
        name: of the run file and the log.
        health: path that answers 200 when the server is ready.
        port: taken where it is free and none is remembered; 0 is any.
        host: what it listens on.
        settings: a digest of what it has to be started with; one started with another digest
            counts as not running, and is replaced by the next start.
    """

    def __init__(
        self,
        home: Home,
        name: str,
        health: str,
        port: int = 0,
        host: str = HOST,
        settings: str = "",
    ) -> None:
        self.home, self.name, self.log = home, name, home.logs / f"{name}.log"
        self._health, self._port, self._host = health, port, host
        self._settings = settings
        self._file = home.run / f"{name}.json"

    def address(self) -> str | None:
        """Where the server answers, or None where it does not."""
        found = self._alive()
        return found.address if found and self._answers(found) else None

    def running(self) -> Running | None:
        """The process, where it runs."""
        return self._alive()

    def start(self, command: Callable[[int], Sequence[str]], env: Mapping[str, str]) -> str:
        """The running server's address; starts ``command(port)`` where there is none.

        Raises:
            SetupError: it does not come up; the message has the last line of its log.
        """
        with self._lock():
            found = self._alive()
            if found and self._wait(found):
                return found.address
            self._kill()
            started = self._launch(command, env)
            if self._wait(started):
                return started.address
            self._kill()
        raise SetupError(
            f"the {self.name} server does not start ({_last_line(self.log)}); its log is {self.log}"
        )

    def stop(self) -> bool:
        """Ends the server with all its children; False where none ran."""
        if self._read() is None:
            return False
        with self._lock():
            return self._kill()

    def _launch(self, command: Callable[[int], Sequence[str]], env: Mapping[str, str]) -> Running:
        port = self._free_port()
        with log_file(self.log) as log:
            process = subprocess.Popen(
                command(port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **env},
                cwd=self.home.root,
                start_new_session=True,
            )
        began = psutil.Process(process.pid).create_time()
        running = Running(process.pid, began, port, self._host, self._settings)
        aside = self._file.with_suffix(".new")
        aside.write_text(json.dumps(asdict(running)))
        aside.replace(self._file)
        return running

    def _wait(self, running: Running) -> bool:
        """Waits until the server answers; False when it died or the time is over."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and _process(running) is not None:
            if self._answers(running):
                return True
            time.sleep(0.1)
        return False

    def _answers(self, running: Running) -> bool:
        # No proxy of the environment may stand between this machine and itself.
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
        family = [process, *process.children(recursive=True)]
        with suppress(psutil.Error):
            process.send_signal(signal.SIGTERM)
        _gone, left = psutil.wait_procs(family, timeout=STOP_S)
        for survivor in left:
            with suppress(psutil.Error):
                survivor.kill()
        psutil.wait_procs(left, timeout=STOP_S)
        return True

    def _alive(self) -> Running | None:
        found = self._read()
        same = found is not None and found.settings == self._settings
        return found if same and _process(found) is not None else None

    def _read(self) -> Running | None:
        try:
            found = json.loads(self._file.read_text())
            where, settings = str(found.get("host", HOST)), str(found.get("settings", ""))
            pid, began, port = int(found["pid"]), float(found["began"]), int(found["port"])
            return Running(pid, began, port, where, settings)
        except (OSError, ValueError, TypeError, KeyError, OverflowError, AttributeError):
            return None

    def _free_port(self) -> int:
        remembered = self._read()
        for port in (*([remembered.port] if remembered else []), self._port, 0):
            found = _bindable(self._host, port)
            if found:
                return found
        raise SetupError(f"no port of {self._host} can be had for the {self.name} server")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.home.make().run / f"{self.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def alive(running: Running) -> bool:
    """Whether the very process that was started still runs."""
    return _process(running) is not None


def _process(running: Running | None) -> psutil.Process | None:
    """The very process that was started, unless it has ended."""
    if running is None:
        return None
    # A damaged file may name what can be no process at all.
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
    """Descriptor of a log that is appended to; one that grew long begins anew."""
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
