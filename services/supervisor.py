"""What Homer starts in the background besides Prefect's server, and how all of it is stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from auth.connections import SignInMethods, sign_in_methods
from auth.signing_in import set_password_from_environment
from domain.errors import SetupError
from services.daemon import HOST, Daemon
from services.prefect import VARIABLE, login_for, prefect_environment
from store.files import MODULE
from store.home import Home

APP_PORT = 8501
POLL_S = 5


class AppServer(Daemon):
    """The server of the app for one data directory.

    Args:
        port: the preferred port; another one is used if it is taken.
        folders: those that videos may be added from by their path.
    """

    def __init__(
        self, home: Home, port: int = APP_PORT, host: str = HOST, folders: Sequence[Path] = ()
    ) -> None:
        super().__init__(home, "app", "/_stcore/health", port, host)
        self._folders = [str(folder.expanduser().absolute()) for folder in folders]

    def start(self) -> str:
        """Start the app if it does not run, and return its address.

        Raises:
            SetupError: it does not start, listens on another address already, or would be open
                to everybody.
            InputError: the password in the environment is too short.
        """
        self.sign_in_methods()
        running = self.running()
        if running is not None and running.host != self.host:
            raise SetupError(
                f"the app runs already and listens on {running.host}: `homer down` first"
            )
        return self.launch(self._command, {"HOMER_HOME": str(self.home.root)})

    def sign_in_methods(self) -> SignInMethods:
        """Return how people sign in, after storing a password from the environment.

        Raises:
            SetupError: the app would be open to everybody.
            InputError: the password is too short.
        """
        set_password_from_environment(self.home)
        return sign_in_methods(self.home, self.host)

    def _command(self, port: int) -> Sequence[str]:
        folders = [f"--videos={folder}" for folder in self._folders]
        return [*MODULE, "ui", "--host", self.host, "--port", str(port), *folders]


def app_address(home: Home) -> str:
    """Return the address of the app; where it does not run, the one that it would have."""
    return AppServer(home).address() or f"http://{HOST}:{APP_PORT}"


class ScheduleWorker(Daemon):
    """The process that runs schedules: a Prefect worker of the library's pool.

    Each run is a process of its own. Stopping it stops them; they are resumed later.
    """

    def __init__(self, home: Home) -> None:
        super().__init__(home, "schedules", "/health")

    def start(self, api: str, pool: str) -> str:
        """Start it if it does not run, for ``pool`` of Prefect's ``api``; return its address.

        Raises:
            SetupError: it does not start.
        """
        secret = login_for(self.home, api)
        env = {
            **prefect_environment(self.home),
            "HOMER_HOME": str(self.home.root),
            "PREFECT_API_URL": api,
            **({VARIABLE: secret} if secret else {}),
            "PREFECT_WORKER_QUERY_SECONDS": str(POLL_S),
            "PREFECT_WORKER_WEBSERVER_HOST": HOST,
            "PYTHONPATH": os.pathsep.join(
                # A run starts in an empty folder.
                [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
            ).strip(os.pathsep),
        }
        return self.launch(partial(worker_command, pool), env)


def worker_command(pool: str, port: int) -> Sequence[str]:
    """Return the command of the worker of a pool; its health check listens on the port."""
    return [*MODULE, "flows.schedules.worker_process", pool, str(port)]
