"""The worker process that runs schedules: a Prefect worker of the library's pool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from services.daemon import HOST, Daemon
from services.prefect import VARIABLE, login_for, prefect_environment
from store.files import MODULE
from store.home import Home

POLL_S = 5


class ScheduleWorker:
    """The worker process of one data directory; each run is a process of its own."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._daemon = Daemon(home, "schedules", "/health")

    def address(self) -> str | None:
        """Return the address of its health check, or None where it does not run."""
        return self._daemon.address()

    def start(self, api: str, pool: str) -> str:
        """Start it if it does not run, for ``pool`` of Prefect's ``api``; return its address.

        Raises:
            SetupError: it does not start.
        """
        secret = login_for(self._home, api)
        env = {
            **prefect_environment(self._home),
            "HOMER_HOME": str(self._home.root),
            "PREFECT_API_URL": api,
            **({VARIABLE: secret} if secret else {}),
            "PREFECT_WORKER_QUERY_SECONDS": str(POLL_S),
            "PREFECT_WORKER_WEBSERVER_HOST": HOST,
            "PYTHONPATH": os.pathsep.join(
                # A run starts in an empty folder.
                [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
            ).strip(os.pathsep),
        }
        return self._daemon.start(partial(_command, pool), env)

    def stop(self) -> bool:
        """Stop it with its runs, which are resumed later; return False if it did not run."""
        return self._daemon.stop()


def _command(pool: str, port: int) -> Sequence[str]:
    return [*MODULE, "flows.schedules.worker_process", pool, str(port)]
