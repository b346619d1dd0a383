"""Prefect's server: one a data directory, on the embedded Postgres, on this machine only."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from flows.daemon import Daemon
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.private import mend

DATABASE = "prefect"

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}
"""Nothing is sent out, and a failing task is told by Homer in one line, not by Prefect in many."""


class PrefectServer:
    """The server that the flows of one data directory report to."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._daemon = Daemon(home, "prefect", "/api/health")

    def address(self) -> str | None:
        """Where its pages are, or None where it does not run."""
        return self._daemon.address()

    def start(self) -> str:
        """The address of the server; starts it, and its Postgres, where they do not run.

        Raises:
            SetupError: one of them does not come up.
        """
        found = self.address()
        if found:
            return found
        postgres = EmbeddedPostgres(self._home)
        postgres.start()
        url = _for_asyncpg(postgres.ensure_database(DATABASE))
        server = {
            "PREFECT_API_DATABASE_CONNECTION_URL": url,
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": url,
        }
        address = self._daemon.start(_command, {**environment(self._home), **server})
        # Prefect copies its pages with the modes that they have in its package.
        mend([self._home.root / "prefect"])
        return address

    def stop(self) -> bool:
        """Ends the server; False where it did not run."""
        return self._daemon.stop()


def environment(home: Home) -> dict[str, str]:
    """What Prefect reads from the environment, for the server and for the flows' processes.

    Its pages are put together where it is told to: else it would write into its own package.
    """
    place = home.root / "prefect"
    pages = {"PREFECT_SERVER_UI_STATIC_DIRECTORY": str(place / "ui")}
    return {**QUIET, **pages, "PREFECT_HOME": str(place)}


def api_url(home: Home) -> str:
    """The API that flows report to: ``$PREFECT_API_URL``, else Homer's own server, started.

    Raises:
        SetupError: the server does not come up.
    """
    return os.environ.get("PREFECT_API_URL") or f"{PrefectServer(home).start()}/api"


def _command(port: int) -> Sequence[str]:
    server = ["server", "start", "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "flows.prefect_server", *server]


def _for_asyncpg(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql+asyncpg://", 1)
