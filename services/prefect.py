"""Prefect's server: one a data directory, on the embedded Postgres, which asks for a login."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence

from services.daemon import Daemon
from services.prefect_login import SERVER_VARIABLE, VARIABLE, known_login, login
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.private_files import mend
from store.usage import Hold

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

    def address(self) -> str | None:
        """Where its pages are, or None where it does not run, or not with the present login."""
        return self._daemon().address()

    def start(self) -> str:
        """Start the server and its Postgres where they do not run; return the server's address.

        Raises:
            SetupError: one of them does not come up, or its login cannot be kept.
        """
        with Hold(self._home):  # One that is about to stop since it is idle has stopped then.
            return self.address() or self._start()

    def _start(self) -> str:
        secret = login(self._home)
        postgres = EmbeddedPostgres(self._home)
        postgres.start()
        url = _for_asyncpg(postgres.ensure_database(DATABASE))
        server = {
            "PREFECT_API_DATABASE_CONNECTION_URL": url,
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": url,
            "HOMER_HOME": str(self._home.root),
            SERVER_VARIABLE: secret,
            VARIABLE: secret,
        }
        address = self._daemon().start(_command, {**environment(self._home), **server})
        # Prefect copies its pages with the modes that they have in its package.
        mend([self._home.root / "prefect"])
        return address

    def stop(self) -> bool:
        """End the server; False where it did not run."""
        return self._daemon().stop()

    def _daemon(self) -> Daemon:
        """One that asks for another login, or, started by an older Homer, for none, is replaced."""
        digest = hashlib.sha256((known_login(self._home) or "").encode()).hexdigest()
        return Daemon(self._home, "prefect", "/api/health", settings=digest)


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
    server = ["--stop-idle", "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "services.prefect_server", *server]


def _for_asyncpg(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql+asyncpg://", 1)
