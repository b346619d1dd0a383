"""What is found of a server that was started: its file, its port, its log; nonsense is nothing."""

from __future__ import annotations

import json
import os
import socket
import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from store.home import Home


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
    assert not found._answers(DaemonProcess(1, 1.0, 99_999))


def test_a_remembered_port_is_taken_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    free = _bindable(HOST, 0)
    found = write(home, json.dumps(asdict(DaemonProcess(2**22 + 7, 1.0, free))))
    assert found._free_port() == free
    monkeypatch.setattr(daemon, "_bindable", lambda _host, port: 0 if port == free else 4242)
    assert found._free_port() == 4242
