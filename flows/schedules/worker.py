"""The process that carries schedules out: a Prefect worker of the library's pool."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from services.daemon import HOST, Daemon
from services.prefect import environment
from services.prefect_login import VARIABLE, login_for
from store.home import Home

LOOKS_EVERY_S = 5


class ScheduleWorker:
    """The worker of one data directory; a run of it is a process of its own."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._daemon = Daemon(home, "schedules", "/health")

    def address(self) -> str | None:
        """Where its health is told, or None where it does not run."""
        return self._daemon.address()

    def start(self, api: str, pool: str) -> str:
        """Starts it where it does not run; ``api`` is Prefect's, ``pool`` what it works for.

        Raises:
            SetupError: it does not come up.
        """
        secret = login_for(self._home, api)
        told = {
            **environment(self._home),
            "HOMER_HOME": str(self._home.root),
            "PREFECT_API_URL": api,
            **({VARIABLE: secret} if secret else {}),
            "PREFECT_WORKER_QUERY_SECONDS": str(LOOKS_EVERY_S),
            "PREFECT_WORKER_WEBSERVER_HOST": HOST,
            "PYTHONPATH": os.pathsep.join([str(_code()), os.environ.get("PYTHONPATH", "")]).strip(
                os.pathsep
            ),
        }
        return self._daemon.start(partial(_command, pool), told)

    def stop(self) -> bool:
        """Ends it with what it runs, which goes on with the next run; False where it did not."""
        return self._daemon.stop()


def _code() -> Path:
    """The folder of Homer's rooms: a run begins in an empty folder of its own."""
    return Path(__file__).parents[2]


def _command(pool: str, port: int) -> Sequence[str]:
    return [sys.executable, "-m", "flows.schedules.worker_process", pool, str(port)]
