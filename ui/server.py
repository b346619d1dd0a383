"""Start, find and stop the server process of the app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auth.listen import SignInMethods, sign_in_methods
from auth.password import set_password_from_environment
from domain.errors import SetupError
from services.daemon import APP_PORT, HOST, app_daemon
from store.files import MODULE
from store.home import Home


class AppServer:
    """The server of the app for one data directory.

    Args:
        port: the preferred port; another one is used if it is taken.
        host: the address that it listens on.
        folders: those that videos may be added from by their path.
    """

    def __init__(
        self, home: Home, port: int = APP_PORT, host: str = HOST, folders: Sequence[Path] = ()
    ) -> None:
        self._home, self._host = home, host
        self._folders = [str(folder.expanduser().absolute()) for folder in folders]
        self._daemon = app_daemon(home, port, host)

    def address(self) -> str | None:
        """Return the address of the app, or None if it does not run."""
        return self._daemon.address()

    def start(self) -> str:
        """Start the app if it does not run, and return its address.

        Raises:
            SetupError: it does not start, listens on another address already, or would be open
                to everybody.
            InputError: the password in the environment is too short.
        """
        self.sign_in_methods()
        running = self._daemon.running()
        if running is not None and running.host != self._host:
            raise SetupError(
                f"the app runs already and listens on {running.host}: `homer down` first"
            )
        return self._daemon.start(self._command, {"HOMER_HOME": str(self._home.root)})

    def sign_in_methods(self) -> SignInMethods:
        """Return how people sign in, after storing a password from the environment.

        Raises:
            SetupError: the app would be open to everybody.
            InputError: the password is too short.
        """
        set_password_from_environment(self._home)
        return sign_in_methods(self._home, self._host)

    def stop(self) -> bool:
        """Stop the app; return whether it ran."""
        return self._daemon.stop()

    def _command(self, port: int) -> Sequence[str]:
        folders = [f"--videos={folder}" for folder in self._folders]
        return [*MODULE, "ui", "--host", self._host, "--port", str(port), *folders]
