"""Prefect's server: one per data directory, on the embedded Postgres, with a login."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from services.daemon import Daemon
from services.prefect_login import SERVER_VARIABLE, VARIABLE, ensure_login, read_login
from store.embedded import EmbeddedPostgres
from store.files import MODULE, restrict_exposed
from store.home import Home
from store.usage import UsageLock

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
"""Settings without telemetry; Homer reports a failing task in one line, Prefect in many."""


class PrefectServer:
    """The server that the flows of one data directory report to."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def address(self) -> str | None:
        """Return its URL, or None where it does not run with the current login."""
        return self._daemon().address()

    def start(self) -> str:
        """Start the server and its Postgres if necessary; return the server's URL.

        Raises:
            SetupError: one of them does not start, or its login cannot be stored.
        """
        with UsageLock(self._home):  # Waits for an idle server that is stopping.
            return self.address() or self._start()

    def _start(self) -> str:
        secret = ensure_login(self._home)
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
        address = self._daemon().start(_command, {**prefect_environment(self._home), **server})
        # Prefect copies its pages with the file modes of its package.
        restrict_exposed([self._home.root / "prefect"])
        return address

    def stop(self) -> bool:
        """Stop the server; return False where it did not run."""
        return self._daemon().stop()

    def _daemon(self) -> Daemon:
        """Return its daemon; a server with another login or none counts as not running."""
        digest = hashlib.sha256((read_login(self._home) or "").encode()).hexdigest()
        return Daemon(self._home, "prefect", "/api/health", settings=digest)


def prefect_environment(home: Home) -> dict[str, str]:
    """Return Prefect's environment variables, for the server and for the flows' processes.

    The directory for its pages is set because by default it writes into its own package.
    """
    directory = home.root / "prefect"
    pages = {"PREFECT_SERVER_UI_STATIC_DIRECTORY": str(directory / "ui")}
    return {**QUIET, **pages, "PREFECT_HOME": str(directory)}


def api_url(home: Home) -> str:
    """Return the API that flows report to, ``$PREFECT_API_URL`` or Homer's own server's.

    Raises:
        SetupError: Homer's own server does not start.
    """
    return os.environ.get("PREFECT_API_URL") or f"{PrefectServer(home).start()}/api"


def _command(port: int) -> Sequence[str]:
    server = ["--stop-idle", "--host", "127.0.0.1", "--port", str(port)]
    return [*MODULE, "services.prefect_server", *server]


def _for_asyncpg(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql+asyncpg://", 1)


def login_for(home: Home, api: str) -> str | None:
    """Return the login to send to an API; Homer's secret is sent to its own server only.

    Args:
        api: the address of a Prefect API; the login of a server that is not the home's own is in
            ``PREFECT_API_AUTH_STRING``.
    """
    own = PrefectServer(home).address()
    if own is not None and api.rstrip("/") == f"{own}/api":
        return ensure_login(home)
    return os.environ.get(VARIABLE)
