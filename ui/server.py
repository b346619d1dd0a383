"""The app's own server process: started in the background, found again, stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from auth.listen import SignInMethods, ways_in
from auth.password import take_given
from domain.errors import SetupError
from services.daemon import HOST, Daemon
from store.home import Home

PORT = 8501


class AppServer:
    """The app of one data directory.

    Args:
        home: the data directory.
        port: where it listens, if that is free.
        host: the address that it listens on.
    """

    def __init__(self, home: Home, port: int = PORT, host: str = HOST) -> None:
        self._home, self._host = home, host
        self._daemon = Daemon(home, "app", "/_stcore/health", port, host)

    def address(self) -> str | None:
        """Where the app is, or None where it does not run."""
        return self._daemon.address()

    def start(self) -> str:
        """The app's address; starts it where it does not run.

        Raises:
            SetupError: it does not come up, listens elsewhere already, or would be open to
                everybody.
            InputError: the password that the environment gives is too short.
        """
        self.ways()
        running = self._daemon.running()
        if running is not None and running.host != self._host:
            raise SetupError(
                f"the app runs already and listens on {running.host}: `homer down` first"
            )
        return self._daemon.start(self._command, {"HOMER_HOME": str(self._home.root)})

    def ways(self) -> SignInMethods:
        """How people come in; a password that the environment gives is kept from then on.

        Raises:
            SetupError: the app would be open to everybody.
            InputError: the password is too short.
        """
        take_given(self._home)
        return ways_in(self._home, self._host)

    def stop(self) -> bool:
        """Ends the app; False where it did not run."""
        return self._daemon.stop()

    def _command(self, port: int) -> Sequence[str]:
        return [sys.executable, "-m", "ui", "--host", self._host, "--port", str(port)]
