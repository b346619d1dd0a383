"""What Homer starts in the background, and how all of it is stopped.

The app, the schedule worker, and Prefect's server: one per data directory, on the embedded
Postgres, with a login.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any

from auth.signing_in import SignInMethods, set_password_from_environment, sign_in_methods
from domain.errors import SetupError
from services.daemon import HOST, Daemon
from store.database import Store
from store.embedded import EmbeddedPostgres
from store.files import MODULE, restrict_exposed
from store.home import Home
from store.postmaster import UsageLock
from store.queries.blobs import own_library_id

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


# Prefect's server.


# The login of Homer's own Prefect server: a random secret for each data directory.

USER = "homer"
VARIABLE = "PREFECT_API_AUTH_STRING"
SERVER_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
BYTES = 32


def login_file(home: Home) -> Path:
    """Return the path of the login: one line, ``USER:SECRET``, readable by its owner only."""
    return home.root / "prefect" / "login"


def ensure_login(home: Home) -> str:
    """Return the login of a data directory's server; create it if there is none.

    Raises:
        SetupError: the file can neither be read nor written.
    """
    path = login_file(home)
    try:
        if login := read_login(home):
            return login
        # Write a new one to a temporary file and link it into place: one of two writers wins.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = f"{USER}:{secrets.token_urlsafe(BYTES)}"
        partial = path.with_name(f".login.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
        try:
            if path.exists() or path.is_symlink():
                partial.replace(path)  # The present one is damaged or could be read by others.
                return text
            with suppress(FileExistsError):
                os.link(partial, path)
            return read_login(home) or text
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(
            f"the login of Prefect's server cannot be kept in {path}: {error.strerror or error}"
        ) from error


def read_login(home: Home) -> str | None:
    """Read the login; None if there is none, or if others could read it."""
    path = login_file(home)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        stat = os.fstat(descriptor)
        text = file.read(1000).strip()
    private = stat.st_uid == os.geteuid() and not stat.st_mode & 0o077
    user, _, secret = text.partition(":")
    return text if private and user == USER and len(secret) >= BYTES else None


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


class PrefectServer(Daemon):
    """The server that the flows of one data directory report to, with its current login."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, "prefect", "/api/health")

    def digest(self) -> str:
        """Return the digest of the login; a server with another one or none is replaced."""
        return hashlib.sha256((read_login(self.home) or "").encode()).hexdigest()

    def start(self) -> str:
        """Start the server and its Postgres if necessary; return the server's URL.

        Raises:
            SetupError: one of them does not start, or its login cannot be stored.
        """
        with UsageLock(self.home):  # Waits for an idle server that is stopping.
            if address := self.address():
                return address
            secret = ensure_login(self.home)
            postgres = EmbeddedPostgres(self.home)
            postgres.start()
            url = _for_asyncpg(postgres.ensure_database(DATABASE))
            server = {
                "PREFECT_API_DATABASE_CONNECTION_URL": url,
                "PREFECT_SERVER_DATABASE_CONNECTION_URL": url,
                "HOMER_HOME": str(self.home.root),
                SERVER_VARIABLE: secret,
                VARIABLE: secret,
            }
            address = self.launch(_command, {**prefect_environment(self.home), **server})
            # Prefect copies its pages with the file modes of its package.
            restrict_exposed([self.home.root / "prefect"])
            return address


def prefect_environment(home: Home) -> dict[str, str]:
    """Return Prefect's environment variables, for the server and for the flows' processes."""
    directory = home.root / "prefect"
    # By default it writes its pages into its own package.
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


# Names of a library's schedules and flow runs on a Prefect server that several libraries share.

LETTERS = 12
"""Letters of a library's id in names that people read; two with the same ones are improbable."""


def library_id(store: Store) -> str:
    """Return the id of a library, which only its restored back-ups share."""
    with store.begin() as session:
        return own_library_id(session)


def library_tag_name(library: str) -> str:
    return f"homer-library:{library}"


def work_pool_name(library: str) -> str:
    return f"homer-{library[:LETTERS]}"


def schedule_name(deployment: str) -> str:
    return deployment.rpartition("@")[0]


# All that Prefect does not document and Homer uses; ``test_prefect_environment.py`` checks it.
#
# Import Prefect inside functions only: its environment is set first.


def drain_events(timeout_s: float) -> None:
    """Stop Prefect's event worker; events not sent within ``timeout_s`` seconds are dropped."""
    from prefect._internal.concurrency.services import _active_services
    from prefect.events.worker import EventsWorker

    # It is bound to the first server that it connected to: with that gone it would retry every
    # event for seconds, and the process could not exit.
    workers = [service for service in _active_services if isinstance(service, EventsWorker)]
    EventsWorker.drain_all(timeout=timeout_s, at_exit=False)
    for worker in workers:
        with suppress(Empty):
            while True:
                worker._queue.get_nowait()
        worker._queue.put_nowait(None)


def omit_state_in_bulk_inserts() -> None:
    """Omit the state of runs from bulk inserts, since it has a table of its own."""
    from prefect.server.database.orm_models import FlowRun, TaskRun

    # From 2.1 on SQLAlchemy refuses a bulk insert with a hybrid property that has no setter for it;
    # before, it ignored the property. Prefect 3.8 inserts scheduled runs that way, so that none
    # would ever start. Prefect 3.9.1 omits the property itself.
    for table in (FlowRun, TaskRun):
        state: Any = vars(table)["state"]
        state.bulk_dml_setter = state.bulk_dml_setter or (lambda _table, _row, _value: None)
