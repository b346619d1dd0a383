"""The app's own server process: started in the background, found again, stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from flows.daemon import Daemon
from store.home import Home

PORT = 8501


class AppServer:
    """The app of one data directory.

    Args:
        home: the data directory.
        port: where it listens on this machine, if that is free.
    """

    def __init__(self, home: Home, port: int = PORT) -> None:
        self._home = home
        self._daemon = Daemon(home, "app", "/_stcore/health", port)

    def address(self) -> str | None:
        """Where the app is, or None where it does not run."""
        return self._daemon.address()

    def start(self) -> str:
        """The app's address; starts it where it does not run.

        Raises:
            SetupError: it does not come up.
        """
        return self._daemon.start(_command, {"HOMER_HOME": str(self._home.root)})

    def stop(self) -> bool:
        """Ends the app; False where it did not run."""
        return self._daemon.stop()


def _command(port: int) -> Sequence[str]:
    return [sys.executable, "-m", "ui", "--port", str(port)]
