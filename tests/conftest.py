"""Shared fixtures: a real Postgres for the whole run, a fresh database, home and models."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import signal
import ssl
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import psycopg
import pytest
import typer.testing
from hypothesis import HealthCheck, settings
from psycopg import sql

from domain.errors import WeightsMissing
from store.database import Store, open_store
from store.driver import parse_url
from store.embedded import USER, EmbeddedPostgres
from store.home import Home
from store.migrations import migrate
from store.postmaster import PORT, UsageLock
from telemetry import tracing
from tests.support import statement_cache
from tests.support.full_suite import FULL, SHORT, examples, is_full
from tests.support.library_templates import FilledLibraries
from tests.support.scratch import MEMORY, has_room, scratch

if TYPE_CHECKING:
    from tests.support.cached_models import CachedModels

TEMPLATE = "homer_template"
SHARED_MEDIA = Path(__file__).parents[1] / ".." / "shared" / "media"
WEIGHTS = Home.default().weights

# A busy machine is no fault of the code: no example has a time limit of its own. The examples are
# the same in every run; HYPOTHESIS_PROFILE=explore draws others.
settings.register_profile(
    "short",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=SHORT,
)
settings.register_profile("full", settings.get_profile("short"), max_examples=FULL)
settings.register_profile("explore", settings.get_profile("full"), derandomize=False)

_numbers = itertools.count()
_replayed: set[str] = set()

if has_room():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A background run ignores Ctrl-C, but the commands that tests start must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="run the tests marked full as well, and properties with more examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    profile = "full" if config.getoption("full") else "short"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profile))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("full"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exempt what collection imports from garbage collection: it lives to the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape what cannot be encoded in captured logs: a worker could not send them."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """One server for the whole run, unsafe and fast, with a migrated template database."""
    with scratch() as folder:
        server = EmbeddedPostgres(Home(folder), fsync=False)
        try:
            server.start()
            migrate(server.ensure_database(TEMPLATE))
            # Tests have data directories of their own, so for this one nobody seems to use it.
            with UsageLock(server.home):
                yield server
        finally:
            server.stop(fast=False)


@pytest.fixture(scope="session", autouse=True)
def share_across_tests() -> Iterator[None]:
    """Share compiled statements, the command line and TLS contexts between the tests of a run."""
    with pytest.MonkeyPatch.context() as patch:
        statement_cache.share(patch, "store.database", "store.migrations")
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        # Whose files the doctor would list each time; test_package_names has the real ones.
        patch.setattr("services.health.distributions", list)
        yield


@pytest.fixture(scope="session", autouse=True)
def refuse_models_in_transactions() -> Iterator[None]:
    """Fail tests that call a model in a transaction, which would hold its lock for minutes."""
    from tests.support.transaction_guard import refuse_calls_in_transactions

    with pytest.MonkeyPatch.context() as patch:
        refuse_calls_in_transactions(patch)
        yield


@pytest.fixture(scope="session")
def make_database(postgres: EmbeddedPostgres) -> Callable[[], str]:
    """Makes a fresh migrated database and returns its url; all go with the server."""

    def make() -> str:
        name = f"test_{os.getpid()}_{next(_numbers)}"
        if not postgres.running():
            log = (postgres.home.logs / "postgres.log").read_text().splitlines()[-20:]
            warnings.warn(
                "\n".join(["the shared Postgres was gone; its log ends:", *log]), stacklevel=2
            )
            postgres.start()
        _admin(postgres, "CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, TEMPLATE)
        return postgres.url(name)

    return make


@pytest.fixture
def database(postgres: EmbeddedPostgres, make_database: Callable[[], str]) -> Iterator[str]:
    """The url of a fresh migrated database, dropped afterwards."""
    url = make_database()
    yield url
    _admin(postgres, "DROP DATABASE {} WITH (FORCE)", str(parse_url(url).database))


@pytest.fixture(scope="session")
def libraries(
    postgres: EmbeddedPostgres,
    make_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> FilledLibraries:
    """Libraries that are filled once and then copied."""

    def replace(name: str, template: str) -> None:
        _admin(postgres, "DROP DATABASE {} WITH (FORCE)", name)
        _admin(postgres, "CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, template)

    return FilledLibraries(tmp_path_factory.mktemp("libraries"), make_database, replace)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An empty data directory with the real weights; a server started in it is stopped."""
    for name in [name for name in os.environ if name.startswith("HOMER_")]:
        monkeypatch.delenv(name)
    found = Home(tmp_path / "home").make()
    monkeypatch.setenv("HOMER_HOME", str(found.root))
    monkeypatch.setenv("HOMER_WEIGHTS", str(WEIGHTS))
    yield found
    EmbeddedPostgres(found).stop(fast=False)


@pytest.fixture
def in_german() -> Iterator[None]:
    """Set the language outside of a page's run too, where a press names the options of a choice."""
    from domain.words import reader
    from ui.language import readers

    before = reader.set(readers()["de"])
    yield
    reader.reset(before)


@pytest.fixture(autouse=True)
def telemetry_off() -> Iterator[None]:
    """End the log and the export that a command set up in this process."""
    yield
    logging.getLogger("homer").handlers[:] = [logging.NullHandler()]
    tracing.export_to()


@pytest.fixture
def tampered() -> None:
    """Mark a test that falsifies its trajectories, which then need not replay."""


@pytest.fixture
def store(home: Home, database: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store on a fresh migrated database of the shared server.

    The last trajectory that every fourth test leaves in it is replayed, with ``--full`` each of
    every test, unless one with the same record was: the same events, and no model asked.
    """
    with open_store(home, database) as opened:
        yield opened
        chosen = is_full() or crc32(request.node.nodeid.encode()) % 4 == 0
        if chosen and "tampered" not in request.fixturenames:
            from tests.support.replaying import replay_all

            replay_all(opened, _replayed, examples(1, 1000))


@pytest.fixture(scope="module")
def library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[tuple[Store, str]]:
    """A library with everything in it, which no test changes, and a trajectory of it."""
    from tests.support.library import fill_library

    with open_store(Home(tmp_path_factory.mktemp("library")), make_database()) as store:
        yield store, fill_library(store)


@pytest.fixture(scope="module")
def backup(library: tuple[Store, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from store.backup import back_up
    from tests.support.library import Quiet

    out = tmp_path_factory.mktemp("backup") / "library.homer"
    back_up(library[0], out, Quiet())
    return out


@pytest.fixture
def empty(tmp_path: Path, make_database: Callable[[], str]) -> Iterator[Store]:
    with open_store(Home(tmp_path / "other"), make_database()) as store:
        yield store


@pytest.fixture(scope="session")
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> CachedModels:
    """The real local models; skips where their weights were not pulled."""
    from models.profile import load_profile
    from tests.support.cached_models import CachedModels

    base = tmp_path_factory.getbasetemp()
    # The folder above a worker's own is that of all workers of the run.
    answers = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "answers"
    answers.mkdir(exist_ok=True)
    found = CachedModels(load_profile("local", None), WEIGHTS, answers)
    try:
        _ = found.text, found.speech, found.faces, found.speaker
    except WeightsMissing as exc:
        pytest.skip(f"{exc}; `homer models pull` fetches them")
    return found


@pytest.fixture(scope="session")
def shared_media() -> Callable[[str], Path]:
    """Path of a shared clip by its name; skips where the clips are not there."""

    def find(name: str) -> Path:
        path = (SHARED_MEDIA / name).resolve()
        if not path.exists():
            pytest.skip(f"{name} is not in the folder of shared media beside the repository")
        return path

    return find


def _admin(server: EmbeddedPostgres, command: str, *names: str) -> None:
    with psycopg.connect(
        host=server.sockets, port=PORT, user=USER, dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(sql.SQL(command).format(*map(sql.Identifier, names)))
