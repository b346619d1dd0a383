"""Opening the store: which database, whether it is this version's, and one transaction."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from domain.errors import DatabaseError
from store import migrations
from store.database import READ_CONNECTIONS, Store, open_store
from store.driver import driver_of, libpq_url, parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import COMMAND, HEAD, migrate, script_folder
from store.tables.schema import Base, VideoRow

REPOSITORY = Path(__file__).parents[2]
SECRET = "hunter2"


def count(store: Store) -> int:
    with store.begin() as session:
        return int(session.execute(text("SELECT count(*) FROM videos")).scalar_one())


def a_video() -> VideoRow:
    return VideoRow(
        id="a" * 16,
        title="t",
        profile="local",
        state="watching",
        models={},
        duration_ms=1,
        width=1,
        height=1,
        has_video=True,
        has_audio=True,
    )


@pytest.fixture
def empty_database(postgres: EmbeddedPostgres) -> str:
    """The url of a database that Homer never saw."""
    return postgres.ensure_database(f"empty_{uuid.uuid4().hex}")


def test_the_migrations_make_exactly_the_schema(database: str) -> None:
    with create_engine(parse_url(database)).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []


def test_a_baseline_that_was_rewritten_is_another_revision() -> None:
    """Otherwise a library of before is opened, and fails with the name of a column."""
    tables = (script_folder() / "versions" / "0001_baseline.sql").read_bytes()
    assert f"0001_{hashlib.sha256(tables).hexdigest()[:8]}" == HEAD


def test_the_folder_of_migrations_does_not_hide_the_package() -> None:
    code = "import alembic, sys; print(alembic.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_many_who_migrate_at_once_migrate_once(empty_database: str) -> None:
    results: list[bool] = []
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        results.append(migrate(empty_database))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 5 + [True]


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "alembic"
    shutil.copytree(script_folder(), broken)
    last = next((broken / "versions").glob("0001*.py"))
    begins = r'(def upgrade\(\) -> None:\n    """.*?""")'
    spoil = r'\1\n    op.execute("SELECT 1/0")'
    last.write_text(re.sub(begins, spoil, last.read_text(), flags=re.DOTALL))
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "script_folder", lambda: broken)
        with pytest.raises(DatabaseError, match="division by zero"):
            migrate(empty_database)
    with psycopg.connect(libpq_url(parse_url(empty_database))) as connection:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert connection.execute(tables).fetchone() == (0,)
    assert migrate(empty_database)


def test_the_embedded_database_is_started_and_migrated_on_first_use(home: Home) -> None:
    with open_store(home) as store:
        assert count(store) == 0
        assert str(home.root) in repr(store)
    with open_store(home) as store:
        assert count(store) == 0


def test_a_database_of_the_users_own_is_named_by_the_environment(
    home: Home, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = libpq_url(parse_url(database))
    monkeypatch.setenv("HOMER_DATABASE_URL", plain.replace("postgresql:", "postgres:"))
    with open_store(home) as store:
        assert (store.psycopg_url, count(store)) == (plain, 0)
    assert not EmbeddedPostgres(home).running()


def test_one_that_was_not_migrated_is_refused(home: Home, empty_database: str) -> None:
    with pytest.raises(DatabaseError, match=f"no tables of Homer's yet: run `{COMMAND}`"):
        open_store(home, empty_database)
    migrate(empty_database)
    open_store(home, empty_database).close()


def test_a_database_of_another_homer_is_left_alone(home: Home, database: str) -> None:
    with psycopg.connect(libpq_url(parse_url(database))) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match="9999"):
        open_store(home, database)
    with pytest.raises(DatabaseError, match="another version of Homer made it"):
        migrate(database)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}",
        f"postgresql://me:{SECRET}@no-such-host.invalid/db",
        f"mysql://me:{SECRET}@127.0.0.1/db",
        f"postgresql://me:{SECRET}@127.0.0.1:port/db",
        f"postgresql://me:{SECRET}@127.0.0.1:5432",
        f"me:{SECRET}@127.0.0.1",
        SECRET,
        f"postgresql://me@127.0.0.1:1/db?no_such_option={SECRET}",
    ],
)
def test_a_database_out_of_reach_is_one_line_without_the_password(home: Home, url: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        open_store(home, url)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(DatabaseError) as caught:
        migrate(url)
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))


def test_a_shown_store_hides_its_password(home: Home) -> None:
    url = parse_url(f"postgresql://me:{SECRET}@db.example:5433/films?password={SECRET}")
    assert repr(Store(home, url)) == (
        f"Store(database films on db.example:5433, blobs in {home.blobs})"
    )


def test_a_role_without_the_right_to_make_extensions_is_reported_what_to_ask_for(
    postgres: EmbeddedPostgres, empty_database: str
) -> None:
    with psycopg.connect(libpq_url(parse_url(empty_database)), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT ALL ON SCHEMA public TO guest")
        connection.execute("DROP EXTENSION IF EXISTS vector")
        guest = empty_database.replace("://homer@", "://guest@")
        with pytest.raises(DatabaseError, match="CREATE EXTENSION vector"):
            migrate(guest)
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE EXTENSION pg_trgm")
    assert migrate(guest)


def test_an_error_undoes_the_whole_transaction(store: Store) -> None:
    def fail() -> None:
        with store.begin() as session:
            session.add(a_video())
            session.flush()
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert count(store) == 0


def test_a_snapshot_sees_nothing_that_is_committed_after_it_began(store: Store) -> None:
    query = text("SELECT count(*) FROM videos")
    with store.begin(snapshot=True) as session:
        assert session.execute(query).scalar_one() == 0
        with store.begin() as other:
            other.add(a_video())
        assert session.execute(query).scalar_one() == 0
    assert count(store) == 1
    with store.begin() as session:
        level = session.execute(text("SHOW transaction_isolation")).scalar_one()
    assert level == "read committed", "a snapshot must not colour the next transaction"


def test_a_store_outlives_a_restart_of_the_server(home: Home) -> None:
    server = EmbeddedPostgres(home)
    with open_store(home) as store:
        count(store)
        server.stop()
        with pytest.raises(DatabaseError, match="cannot be reached"):
            count(store)
        server.start()
        assert count(store) == 0


def test_a_connection_lost_in_the_middle_is_reported(store: Store) -> None:
    def lose() -> None:
        with store.begin() as session:
            session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(DatabaseError, match="run this again"):
        lose()
    assert count(store) == 0


def own_number(connection: Connection) -> int:
    """Which of the server's processes answers."""
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def number_past_it(connection: Connection) -> int:
    found = driver_of(connection).execute("SELECT pg_backend_pid()").fetchone()
    assert found is not None
    return int(found[0])


def at_once(store: Store, read: Callable[[Connection], int], count: int) -> set[int]:
    """What so many threads read, each over a connection of its own."""
    together = Barrier(count, timeout=30)

    def waiting(connection: Connection) -> int:
        found = read(connection)
        together.wait()
        return found

    with ThreadPoolExecutor(count) as pool:
        return {
            one.result()
            for one in [pool.submit(store.run_read_only, waiting) for _ in range(count)]
        }


@pytest.mark.parametrize("read", [own_number, number_past_it])
def test_a_glance_asks_again_where_connections_were_lost_before(
    store: Store, read: Callable[[Connection], int], caplog: pytest.LogCaptureFixture
) -> None:
    before = at_once(store, read, 3)
    assert len(before) == 3
    assert store.run_read_only(read) in before
    with store.begin() as session:
        for one in before:
            session.execute(text("SELECT pg_terminate_backend(:one, 5000)"), {"one": one})
    assert store.run_read_only(read) not in before
    assert not at_once(store, read, 3) & before
    assert not caplog.records


def test_a_lack_of_connections_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._read_engine.pool, "_timeout", 0.05)
    together, output = Barrier(READ_CONNECTIONS + 1, timeout=30), Event()

    def waiting(_: Connection) -> None:
        together.wait()
        output.wait(30)

    with ThreadPoolExecutor(READ_CONNECTIONS) as pool:
        begun = [pool.submit(store.run_read_only, waiting) for _ in range(READ_CONNECTIONS)]
        together.wait()
        with pytest.raises(DatabaseError, match="are in use: do less at a time"):
            store.run_read_only(own_number)
        output.set()
        assert [one.result() for one in begun] == [None] * READ_CONNECTIONS
    assert store.run_read_only(own_number)
