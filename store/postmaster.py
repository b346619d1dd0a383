"""Reads ``postmaster.pid`` and tells a live server from one that was killed.

A killed server may leave a pid file whose pid is gone, is a zombie nobody reaped, or is by now
another program. Postgres itself only copes with the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What a pid file says. ``status`` is starting, ready, standby or stopping."""

    pid: int
    sockets: str
    status: str


def read(data: Path) -> Postmaster | None:
    """The pid file of the data folder, or None where there is none or it is half written."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return Postmaster(int(lines[0]), lines[4], lines[7].strip() if len(lines) > 7 else "")
    except (OSError, ValueError, IndexError):
        return None


def alive(data: Path) -> Postmaster | None:
    """The pid file, if its process lives and serves this very folder."""
    found = read(data)
    return found if found and _serves(found.pid, data) else None


def _serves(pid: int, data: Path) -> bool:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return str(data) in process.cmdline() or _in_folder(process, data)
    except psutil.Error:
        return False


def _in_folder(process: psutil.Process, data: Path) -> bool:
    """Every Postgres process works in its data folder, wherever that was moved to."""
    with suppress(psutil.Error, OSError):
        return "postgres" in process.name() and Path(process.cwd()).samefile(data)
    return False


def orphans(data: Path) -> Iterator[psutil.Process]:
    """Processes of the folder's server; after its death they go by themselves, but not at once."""
    for process in psutil.process_iter():
        if _in_folder(process, data):
            yield process


def clear_stale(data: Path, sockets: Path) -> None:
    """Removes what a killed server left, once none of its processes is alive.

    Two servers on one data folder would destroy it, so a survivor is waited for, then ended. A pid
    file whose pid is gone stays: Postgres replaces it, after its own check for survivors.
    """
    if not wait_until(lambda: not any(orphans(data)), 5):
        for process in orphans(data):
            with suppress(psutil.Error):
                process.kill()
        wait_until(lambda: not any(orphans(data)), 10)
    found = read(data)
    if found is None or psutil.pid_exists(found.pid):
        for left in (data / "postmaster.pid", sockets / f"{SOCKET}.lock", sockets / SOCKET):
            left.unlink(missing_ok=True)


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Polls until ``true()`` holds; False when the time is over."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
