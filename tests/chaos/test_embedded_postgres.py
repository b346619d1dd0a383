"""The embedded server outlives kills, races, odd places and the leftovers of dead processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import text

from domain.errors import DatabaseError
from store import embedded, postmaster
from store import postmaster as privileges
from store.database import Store, open_store
from store.driver import libpq_url, parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD
from store.postmaster import NOBODY, ROOT_RUNNERS, UnprivilegedUser, socket_folder
from tests.support.full_suite import examples, in_full, sample

REPOSITORY = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")


@pytest.fixture
def server(home: Home) -> Iterator[EmbeddedPostgres]:
    found = EmbeddedPostgres(home, fsync=False)
    yield found
    found.stop(fast=False)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running server, for tests that only look at it."""
    found = EmbeddedPostgres(Home(tmp_path_factory.mktemp("started")), fsync=False)
    found.start()
    yield found
    found.stop(fast=False)


def connect(url: str) -> psycopg.Connection:
    return psycopg.connect(libpq_url(parse_url(url)), autocommit=True)


def query(url: str, text: str) -> object:
    with connect(url) as connection:
        row = connection.execute(text.encode()).fetchone()
    return row[0] if row else None


def pid_of(server: EmbeddedPostgres) -> int:
    found = postmaster.read_pid_file(server.home.postgres)
    assert found is not None
    return found.pid


def write_row(url: str) -> None:
    with connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")


def test_it_starts_once_is_found_running_and_stops(server: EmbeddedPostgres) -> None:
    assert not server.running()
    url = server.start()
    write_row(url)
    first = pid_of(server)
    assert (EmbeddedPostgres(server.home).start(), pid_of(server)) == (url, first)
    assert server.stop()
    assert not server.running()
    assert not server.stop()
    assert query(server.start(), "SELECT answer FROM kept") == 42


def test_it_listens_on_a_private_socket_only(started: EmbeddedPostgres) -> None:
    process = psutil.Process(pid_of(started))
    assert [c for c in process.net_connections() if c.status == "LISTEN"] == []
    folder = Path(started.sockets)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder == socket_folder(started.home)


def test_its_text_sorts_and_folds_the_same_everywhere(started: EmbeddedPostgres) -> None:
    url = started.start()
    assert query(url, "SELECT lower('ÄÉΣ')") == "äéσ"
    assert query(url, "SELECT datlocprovider::text FROM pg_database LIMIT 1") == "b"
    assert query(url, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{b,B,a,ä}'::text[]) x") == (
        "Babä"
    )


def test_more_databases_live_beside_the_first(started: EmbeddedPostgres) -> None:
    url = started.ensure_database("prefect")
    assert started.ensure_database("prefect") == url == started.url("prefect")
    assert query(url, "SELECT current_database()") == "prefect"
    for name in ("", "Bad Name", 'x"; DROP DATABASE homer; --', "1st"):
        with pytest.raises(ValueError, match="not a database name"):
            started.ensure_database(name)


@pytest.mark.parametrize("wait", [False, in_full(True)])
def test_after_a_kill_every_committed_row_is_there(server: EmbeddedPostgres, wait: bool) -> None:
    write_row(server.start())
    killed = pid_of(server)
    os.kill(killed, signal.SIGKILL)
    if wait:
        postmaster.wait_until(lambda: not server.running(), 10)
    assert query(server.start(), "SELECT answer FROM kept") == 42
    assert pid_of(server) != killed


def test_a_query_that_outlives_its_killed_server_is_ended_first(server: EmbeddedPostgres) -> None:
    """A backend that does not see the death of its server holds the memory they shared."""
    url = server.start()
    write_row(url)
    with connect(url) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        backend.suspend()
        os.kill(pid_of(server), signal.SIGKILL)
        assert query(server.start(), "SELECT answer FROM kept") == 42
        assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE


def stale_pid_file(server: EmbeddedPostgres, pid: int) -> None:
    """As left by a server of that pid, in every place that Postgres looks at."""
    path = server.home.postgres / "postmaster.pid"
    lines = path.read_text().splitlines()
    server.stop(fast=False)
    path.write_text("\n".join([str(pid), *lines[1:]]) + "\n")
    (server.home.run / f"{postmaster.SOCKET}.lock").write_text("\n".join([str(pid), *lines[1:]]))


def test_a_pid_that_is_now_another_program_is_no_server(server: EmbeddedPostgres) -> None:
    server.start()
    with subprocess.Popen(["sleep", "60"]) as other:
        stale_pid_file(server, other.pid)
        assert not server.running()
        assert server.stop() is False
        server.start()
        assert server.running()
        assert other.poll() is None, "the other program must be left alone"
        other.kill()


@pytest.mark.full
def test_a_zombie_is_no_server(server: EmbeddedPostgres) -> None:
    server.start()
    child = subprocess.Popen(["true"])
    postmaster.wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, 10)
    stale_pid_file(server, child.pid)
    assert not server.running()
    server.start()
    assert server.running()
    child.wait()


@pytest.mark.parametrize("text", sample(["nonsense\n"], ["", "nonsense\n", "99999999\n/x\n"]))
def test_a_half_written_pid_file_is_no_server(server: EmbeddedPostgres, text: str) -> None:
    server.start()
    server.stop()
    (server.home.postgres / "postmaster.pid").write_text(text)
    assert not server.running()
    server.start()
    assert server.running()


def test_a_cluster_that_was_never_finished_is_made_anew(server: EmbeddedPostgres) -> None:
    aside = server.home.root / "postgres.new"
    aside.mkdir()
    (aside / "PG_VERSION").write_text("18\n")
    (server.home.root / "postgres").mkdir()
    server.start()
    assert server.running()
    assert not aside.exists()


def test_a_cluster_of_another_version_is_left_alone(home: Home) -> None:
    home.postgres.mkdir()
    (home.postgres / "PG_VERSION").write_text("15\n")
    with pytest.raises(DatabaseError, match=r"made by PostgreSQL 15, installed is 18"):
        EmbeddedPostgres(home).start()
    assert [path.name for path in home.postgres.iterdir()] == ["PG_VERSION"]


@pytest.mark.parametrize("name", ["deep/" * 30, "with space, comma, ünï, quo'te%20"])
def test_any_home_works_however_deep_or_odd_its_name(tmp_path: Path, name: str) -> None:
    server = EmbeddedPostgres(Home(tmp_path / name), fsync=False)
    try:
        with open_store(server.home) as store, store.begin():
            pass
        folder = Path(server.sockets)
        assert len(str(folder)) < 80
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        server.stop(fast=False)
    assert not folder.exists()


def test_foreign_socket_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / ("deep/" * 30))
    # Not in tmp_path, which may be too long for a socket too.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        folder = socket_folder(home)
        assert folder.parent == Path(short)
        folder.chmod(0o777)
        with pytest.raises(DatabaseError, match="not your own private folder"):
            socket_folder(home)


def test_another_temporary_folder_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = EmbeddedPostgres(Home(tmp_path / ("deep/" * 30)), fsync=False)
    try:
        url = server.start()
        folder = Path(server.sockets)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert server.start() == url
    finally:
        server.stop(fast=False)
    assert not folder.exists()
    assert server.home.root.exists()


def test_variables_of_the_users_own_postgres_do_not_reach_it(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {"PGPORT": "1", "PGHOST": "/nowhere", "PGUSER": "x", "PGDATABASE": "x", "LC_ALL": "xx_YY"}
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    assert query(server.start(), "SELECT current_user") == "homer"


_OPEN = """
import sys
from pathlib import Path
from sqlalchemy import text
from store.database import open_store
from store.home import Home
from store.postmaster import socket_folder
with open_store(Home(Path(sys.argv[1]))) as store, store.begin() as session:
    print(session.scalar(text("SELECT version_num FROM alembic_version")), flush=True)
"""


def test_processes_that_start_at_once_share_one_migrated_server(home: Home) -> None:
    command = [sys.executable, "-c", _OPEN, str(home.root)]
    pipe = subprocess.PIPE
    count = examples(2, 4)
    begun = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True)
        for _ in range(count)
    ]
    output = [process.communicate(timeout=120) for process in begun]
    assert [process.returncode for process in begun] == [0] * count, output
    assert {out for out, _ in output} == {f"{HEAD}\n"}
    commands = [(p, p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    assert len([process for process, words in commands if str(home.postgres) in words]) == 1


def test_the_server_outlives_the_process_that_started_it_and_its_interrupt(home: Home) -> None:
    command = [sys.executable, "-c", (_OPEN + "\nimport time; time.sleep(60)"), str(home.root)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, start_new_session=True
    ) as starter:
        assert (starter.stdout and starter.stdout.readline().decode().strip()) == HEAD
        assert starter.poll() is None
        os.killpg(starter.pid, signal.SIGINT)
        assert starter.wait(30)
    time.sleep(0.2)
    assert EmbeddedPostgres(home).running()


@as_root
@pytest.mark.parametrize("runner", ROOT_RUNNERS, ids=["namespace", "nobody"])
def test_root_runs_it_as_nobody_either_way(
    home: Home, monkeypatch: pytest.MonkeyPatch, runner: UnprivilegedUser
) -> None:
    monkeypatch.setattr(embedded, "find_runner", lambda: runner)
    server = EmbeddedPostgres(home, fsync=False)
    write_row(server.start())
    assert home.postgres.stat().st_uid == runner.owner
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    server.stop()
    other = next(one for one in ROOT_RUNNERS if one is not runner)
    monkeypatch.setattr(embedded, "find_runner", lambda: other)
    assert query(server.start(), "SELECT answer FROM kept") == 42
    assert server.stop()


@as_root
def test_root_where_neither_way_is_open_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tuple(UnprivilegedUser(("false",), owner) for owner in (0, NOBODY))
    monkeypatch.setattr(privileges, "ROOT_RUNNERS", closed)
    privileges.find_runner.cache_clear()
    with pytest.raises(DatabaseError, match="ordinary user, or set HOMER_DATABASE_URL"):
        privileges.find_runner()
    privileges.find_runner.cache_clear()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of that many megabytes; skips where mounting is not allowed."""
    mounted: list[Path] = []

    def mount(megabytes: int) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
        done = subprocess.run(["mount", *options], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("mounting a small disk needs root")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        EmbeddedPostgres(Home(folder)).stop(fast=False)
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill_up(store: Store) -> None:
    rows = "SELECT repeat(md5(i::text), 30) AS t FROM generate_series(1, 20000) i"
    for number in range(40):
        with store.begin() as session:
            session.execute(text(f"CREATE TABLE heap{number} AS {rows}"))


def test_a_disk_too_small_for_a_cluster_is_reported(small_disk: Callable[[int], Path]) -> None:
    folder = small_disk(20)
    with pytest.raises(DatabaseError, match="No space left on device"):
        EmbeddedPostgres(Home(folder)).start()
    assert not (folder / "postgres").exists()
    assert not (folder / "postgres.new").exists()


def test_a_disk_that_fills_up_loses_one_transaction(small_disk: Callable[[int], Path]) -> None:
    home = Home(small_disk(110))
    with open_store(home) as store:
        with store.begin() as session:
            session.execute(text("CREATE TABLE kept AS SELECT 42 AS answer"))
        with pytest.raises(DatabaseError, match=r"No space left|cannot be reached"):
            fill_up(store)
    EmbeddedPostgres(home).stop(fast=False)
    subprocess.run(["mount", "-o", "remount,size=400m", str(home.root)], check=True)
    with open_store(home) as store, store.begin() as session:
        assert session.execute(text("SELECT answer FROM kept")).scalar_one() == 42


def test_a_home_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    from domain.errors import SetupError

    (tmp_path / "file").write_text("x")
    with pytest.raises(SetupError, match="set HOMER_HOME to a folder"):
        open_store(Home(tmp_path / "file" / "home"))
