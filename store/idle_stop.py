"""``python -m store.idle_stop HOME``: stops the embedded Postgres that nobody needs any more.

One such process is started with each server and ends with it. It stops the server once it has been
idle for the time that is set, and at once when the data directory is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from domain.errors import HomerError
from store import postmaster
from store.home import Home
from store.usage import LOOK_EVERY_S, IdleClock, idle_limit_s

END_WITHIN_S = 10.0


def launch(home: Home) -> None:
    """Start the process in the background; it ends with the server that runs now."""
    code = Path(__file__).parents[1]
    found = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH")]))
    subprocess.Popen(
        [sys.executable, "-m", "store.idle_stop", str(home.root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": found},
        cwd="/",
        start_new_session=True,
    )


def watch(home: Home) -> None:
    """Wait until the server has ended, stopping it where it is idle or its directory is gone."""
    found = postmaster.alive(home.postgres)
    if found is None:
        return None
    server, clock, limit = psutil.Process(found.pid), IdleClock(home), idle_limit_s(home)
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        if clock.is_gone():
            return end(server)
        if limit is not None and clock.idle_s() > limit:
            with clock.unused() as free:
                if free:
                    return _stop(home)
        time.sleep(LOOK_EVERY_S)
    return None


def end(server: psutil.Process) -> None:
    """End a server whose files are gone: asked twice, then killed with its children."""
    family = [server, *server.children(recursive=True)]
    for ask in (signal.SIGINT, signal.SIGQUIT):
        with suppress(psutil.Error):
            server.send_signal(ask)
        if not psutil.wait_procs(family, timeout=END_WITHIN_S)[1]:
            return
    for process in family:
        with suppress(psutil.Error):
            process.kill()


def _stop(home: Home) -> None:
    from store.embedded import EmbeddedPostgres

    EmbeddedPostgres(home).stop()


if __name__ == "__main__":
    with suppress(psutil.Error, HomerError, OSError):
        watch(Home(Path(sys.argv[1])))
