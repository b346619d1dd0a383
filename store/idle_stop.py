"""``python -m store.idle_stop HOME``: stops the embedded Postgres when nobody uses it.

One such process is started with each server and ends with it. It stops the server once it has been
idle for the configured time, and at once when the data directory is gone.
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
from store.files import MODULE
from store.home import Home
from store.usage import POLL_INTERVAL_S, IdleClock, idle_limit_s

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
    server, clock, limit = (
        psutil.Process(postmaster_process.pid),
        IdleClock(home),
        idle_limit_s(home),
    )
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        if clock.is_gone():
            return kill_server(server)
        if limit is not None and clock.idle_s() > limit:
            with clock.unused() as free:
                if free:
                    return _stop(home)
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


def _stop(home: Home) -> None:
    # It imports this module, to launch the watcher.
    from store.embedded import EmbeddedPostgres

    EmbeddedPostgres(home).stop()


if __name__ == "__main__":
    with suppress(psutil.Error, HomerError, OSError):
        watch_server(Home(Path(sys.argv[1])))
