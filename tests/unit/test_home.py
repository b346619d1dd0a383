"""Where things lie, who holds their locks, and what a server's files say."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.errors import DatabaseError
from services import daemon
from services.daemon import (
    HOST,
    LOG_LIMIT,
    Daemon,
    DaemonProcess,
    _bindable,
    _last_line,
    _process,
    log_file,
)
from store.driver import describe_url, libpq_url, parse_url
from store.files import (
    file_lock,
    is_locked,
    lock_file,
    locked_paths,
    try_file_lock,
    try_lock_file,
    unlock_file,
)
from store.home import Home
from store.postmaster import (
    LONGEST,
    SOCKET,
    Postmaster,
    clear_stale,
    read_pid_file,
    running_server,
    socket_folder,
    wait_until,
)
from tests.support.full_suite import examples

DEAD = 2**22 - 7
"""Beyond what a kernel gives unless it is told to."""


def test_the_environment_names_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOMER_HOME", str(tmp_path / "here"))
    monkeypatch.delenv("HOMER_WEIGHTS", raising=False)
    home = Home.default()
    places = (home.postgres, home.blobs, home.weights, home.logs, home.run, home.config)
    assert all(place.parent == tmp_path / "here" for place in places)
    assert not (tmp_path / "here").exists(), "naming a place must not make it"


def test_platform_names_the_home_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOMER_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.default().root.name == "homer"
    assert Home.default().root.is_relative_to(tmp_path)


def test_home_is_absolute_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home(Path("data")).root == tmp_path / "data"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home(Path("~/data")).root == tmp_path / "data"


def test_a_made_home_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").make().make()
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (home.root, home.run, home.logs))


@given(st.text("ab é,'/%\"\n", min_size=1, max_size=150).filter(lambda s: "\0" not in s))
def test_a_socket_always_fits_and_never_needs_quotes(name: str) -> None:
    folder = str(socket_folder(Home(Path("/nowhere") / name.strip("/"))))
    assert len(f"{folder}/.s.PGSQL.5432.lock".encode()) <= LONGEST
    assert not set(folder) & set(" ,'\"%\né")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_urls_of_postgres_become_psycopgs(scheme: str) -> None:
    url = parse_url(f"{scheme}://me:p%40ss@db:5433/films?sslmode=require")
    assert url.drivername == "postgresql+psycopg"
    assert libpq_url(url) == "postgresql://me:p%40ss@db:5433/films?sslmode=require"
    assert describe_url(url) == "database films on db:5433"


@pytest.mark.parametrize(
    "text",
    ["", "films", "sqlite:///x", "postgresql://db", "postgresql+asyncpg://db/x", "://", "\0"],
)
def test_other_urls_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(DatabaseError, match="postgresql://USER@HOST:PORT/DATABASE"):
        parse_url(text)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_urls(text: str) -> None:
    with suppress(DatabaseError):
        assert describe_url(parse_url(text))


def test_one_holder_at_a_time_has_the_lock_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with file_lock(path), try_file_lock(path) as second:
        assert not second
    with try_file_lock(path) as after:
        assert after


def test_a_shared_lock_has_any_number_of_holders_and_no_exclusive_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as one, path.open() as two, path.open() as three:
        lock_file(one, shared=True)
        assert try_lock_file(two, shared=True)
        assert not try_lock_file(three)
        unlock_file(one)
        unlock_file(two)
        assert try_lock_file(three)
        assert not try_lock_file(two, shared=True)


def test_a_child_process_that_inherits_the_file_holds_its_lock_too(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as file:
        lock_file(file)
        inherited = os.dup(file.fileno())
    with try_file_lock(path) as locked:
        assert not locked
    os.close(inherited)
    with try_file_lock(path) as locked:
        assert locked


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system lists no locks")
def test_others_see_that_a_file_is_locked_without_taking_its_lock(tmp_path: Path) -> None:
    path, free, absent = tmp_path / "a.lock", tmp_path / "b.lock", tmp_path / "c.lock"
    free.touch()
    with file_lock(path):
        assert locked_paths([path, free, absent]) == [path]
    assert not is_locked(path)


def pid_file(data: Path, pid: int | str, *, status: str | None = "ready   ") -> Path:
    """A pid file as Postgres writes it; without a status while it is half written."""
    lines = [pid, data, 1_700_000_000, 5432, "/run/sockets", "", "  5432001  65536"]
    place = data / "postmaster.pid"
    place.write_text(
        "\n".join(map(str, [*lines, *([status] if status is not None else [])])) + "\n"
    )
    return place


def test_it_says_which_process_where_its_sockets_are_and_how_far_it_is(tmp_path: Path) -> None:
    pid_file(tmp_path, 4711)
    assert read_pid_file(tmp_path) == Postmaster(4711, "/run/sockets", "ready")


@pytest.mark.parametrize(
    "text", ["", "\n", "4711", "4711\n/data\n170\n5432\n", "pid\n\n\n\n/run\n"]
)
def test_one_that_is_half_written_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "postmaster.pid").write_text(text)
    assert read_pid_file(tmp_path) is None
    assert running_server(tmp_path) is None


@settings(max_examples=examples(15, 40))
@given(st.binary(max_size=60))
def test_any_bytes_read_safely(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    place = tmp_path_factory.mktemp("data")
    (place / "postmaster.pid").write_bytes(data)
    read_pid_file(place)


@pytest.mark.parametrize("pid", [DEAD, os.getpid(), 1], ids=["gone", "ours", "first"])
def test_a_process_that_is_gone_or_another_program_is_no_server(tmp_path: Path, pid: int) -> None:
    pid_file(tmp_path, pid)
    assert running_server(tmp_path) is None


def test_a_process_that_serves_this_very_folder_is(tmp_path: Path) -> None:
    waits = [sys.executable, "-c", "input('here')", "-D", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(waits, stdin=pipe, stdout=pipe) as server:
        # Until a process has begun, the system does not tell with what.
        assert (server.stdout and server.stdout.read(4)) == b"here"
        pid_file(tmp_path, server.pid)
        found, other = running_server(tmp_path), tmp_path / "other"
        other.mkdir()
        pid_file(other, server.pid)
        assert running_server(other) is None
    assert (found and found.pid) == server.pid


def test_one_that_nobody_reaped_is_none(tmp_path: Path) -> None:
    # It is gone, but its parent has not asked for it yet.
    with subprocess.Popen([sys.executable, "-c", "", "-D", str(tmp_path)]) as server:
        pid_file(tmp_path, server.pid)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        assert running_server(tmp_path) is None


def left_by(data: Path, pid: int | str) -> list[Path]:
    """What a killed server leaves: its pid file and its sockets."""
    sockets = [data / SOCKET, data / f"{SOCKET}.lock"]
    for one in sockets:
        one.write_text("left")
    return [pid_file(data, pid), *sockets]


@pytest.mark.parametrize("pid", [os.getpid(), "half"], ids=["ours", "half"])
def test_what_a_killed_server_left_goes_where_none_sees(tmp_path: Path, pid: int | str) -> None:
    left = left_by(tmp_path, pid)
    clear_stale(tmp_path, tmp_path)
    assert not any(one.exists() for one in left)


def test_a_pid_that_is_gone_is_left_to_postgres(tmp_path: Path) -> None:
    left = left_by(tmp_path, DEAD)
    clear_stale(tmp_path, tmp_path)
    assert all(one.exists() for one in left)


def test_waiting_ends_as_soon_as_it_holds_or_when_the_time_is_over() -> None:
    looks = iter([False, False, True])
    assert wait_until(lambda: next(looks), 10)
    assert not wait_until(lambda: False, 0.01)
    assert wait_until(lambda: True, 0)


# What is found of a server that was started: its file, its port, its log; nonsense is nothing.


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").make()


def ours() -> DaemonProcess:
    return DaemonProcess(os.getpid(), psutil.Process().create_time(), 1)


def write(home: Home, data: bytes | str) -> Daemon:
    found = Daemon(home, "app", "/health")
    (home.run / "app.json").write_bytes(data.encode() if isinstance(data, str) else data)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.binary(max_size=30)
    | st.dictionaries(
        st.sampled_from(["pid", "began", "port"]),
        st.none() | st.integers() | st.floats() | st.text(max_size=3),
    ).map(json.dumps)
)
def test_a_file_of_anything_is_no_server(home: Home, data: bytes | str) -> None:
    found = write(home, data)
    assert found.address() is None
    assert found.stop() is False


@pytest.mark.parametrize(
    ("change", "alive"), [({}, True), ({"began": 0.0}, False), ({"pid": 2**22 + 7}, False)]
)
def test_processes_are_told_from_later_ones_by_number(change: dict[str, Any], alive: bool) -> None:
    found = ours()
    output = DaemonProcess(
        change.get("pid", found.pid), change.get("began", found.began), change.get("port", 1)
    )
    assert (_process(output) is not None) == alive
    assert _process(None) is None


def test_a_port_is_taken_where_it_is_free_and_none_where_not() -> None:
    assert _bindable(HOST, 0) > 0
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        assert _bindable(HOST, taken.getsockname()[1]) == 0
    assert ours().address == f"http://{HOST}:1"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
        ("192.0.2.7", "http://192.0.2.7:1"),
    ],
)
def test_this_machine_reaches_a_server_wherever_it_listens(host: str, address: str) -> None:
    assert replace(ours(), host=host).address == address


def test_a_log_is_the_owners_only_and_goes_on_where_it_was(home: Home) -> None:
    path = home.logs / "app.log"
    for line in (b"one\n", b"two\n"):
        with log_file(path) as log:
            os.write(log, line)
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_that_has_grown_long_is_put_aside_once(home: Home) -> None:
    path = home.logs / "app.log"
    with path.open("wb") as file:
        file.truncate(LOG_LIMIT + 1)
    for line in (b"new\n", b"newer\n"):
        with log_file(path) as log:
            os.write(log, line)
    assert path.read_bytes() == b"new\nnewer\n"
    assert path.with_suffix(".old").stat().st_size == LOG_LIMIT + 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "no output"),
        (b"\n\n \n", "no output"),
        (b"one\ntwo\n\n", "two"),
        (b"caf\xe9 is closed", "caf� is closed"),
        (None, "no output"),
    ],
)
def test_the_last_line_of_a_log_says_something(home: Home, data: bytes | None, line: str) -> None:
    path = home.logs / "app.log"
    if data is not None:
        path.write_bytes(data)
    assert _last_line(path) == line


def test_a_server_that_answers_something_else_is_not_ready(home: Home) -> None:
    found = Daemon(home, "app", "/health")
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        assert not found._answers(DaemonProcess(1, 1.0, taken.getsockname()[1]))
    assert not found._answers(DaemonProcess(1, 1.0, 65_536))


def test_a_remembered_port_is_taken_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    free = _bindable(HOST, 0)
    found = write(home, json.dumps(asdict(DaemonProcess(2**22 + 7, 1.0, free))))
    assert found._free_port() == free
    monkeypatch.setattr(daemon, "_bindable", lambda _host, port: 0 if port == free else 4242)
    assert found._free_port() == 4242
