"""The address of the app of a data directory."""

from __future__ import annotations

from services.daemon import HOST, Daemon
from store.home import Home

APP_PORT = 8501


def app_daemon(home: Home, port: int = APP_PORT, host: str = HOST) -> Daemon:
    """Return the app's server process; it may not run."""
    return Daemon(home, "app", "/_stcore/health", port, host)


def app_address(home: Home) -> str:
    """Return the address of the app; where it does not run, the one that it would have."""
    return app_daemon(home).address() or f"http://{HOST}:{APP_PORT}"
