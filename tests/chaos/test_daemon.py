"""A background server is started once, found again, replaced when it died, and stopped."""

from __future__ import annotations

import os
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from domain.errors import SetupError
from services.daemon import HOST, Daemon
from store.home import Home

SERVER = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ.get("WORD", "").encode()
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def command(port: int) -> list[str]:
    return [sys.executable, "-c", SERVER, str(port)]


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path).make()


@pytest.fixture
def daemon(place: Home) -> Iterator[Daemon]:
    """A server of a fresh data directory, stopped afterwards."""
    found = Daemon(place, "little", "/health")
    yield found
    found.stop()


def pid_of(daemon: Daemon) -> int:
    running = daemon._read()
    assert running is not None
    return running.pid


def test_it_is_started_once_and_found_by_others(daemon: Daemon, place: Home) -> None:
    assert daemon.address() is None
    address = daemon.launch(command, {"WORD": "hello"})
    first = pid_of(daemon)
    with urllib.request.urlopen(f"{address}/health") as reply:  # noqa: S310
        assert reply.read() == b"hello"
    other = Daemon(place, "little", "/health")
    assert (other.address(), other.launch(command, {}), pid_of(other)) == (address, address, first)


def test_many_who_start_it_at_once_get_one(place: Home, daemon: Daemon) -> None:
    with ThreadPoolExecutor(6) as pool:
        starts = [
            pool.submit(Daemon(place, "little", "/health").launch, command, {}) for _ in range(6)
        ]
    assert len({start.result() for start in starts}) == 1


def test_one_that_was_killed_is_replaced_on_the_same_port(daemon: Daemon) -> None:
    address = daemon.launch(command, {})
    first = pid_of(daemon)
    os.kill(first, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(first)] if psutil.pid_exists(first) else [], timeout=5)
    assert daemon.address() is None
    assert daemon.launch(command, {}) == address
    assert pid_of(daemon) != first


def test_a_stranger_with_the_same_process_id_is_left_alone(daemon: Daemon) -> None:
    daemon.launch(command, {})
    text = daemon._file.read_text()
    running = daemon._read()
    assert running is not None
    daemon.stop()
    daemon._file.write_text(text.replace(f'"pid": {running.pid}', f'"pid": {os.getpid()}'))
    assert daemon.address() is None
    assert daemon.stop() is False


def test_a_port_that_is_taken_is_passed_over(place: Home) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        daemon = Daemon(place, "little", "/health", port)
        try:
            assert daemon.launch(command, {}) != f"http://{HOST}:{port}"
        finally:
            daemon.stop()


def test_one_that_hangs_is_replaced(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.launch(command, {})
    first = pid_of(daemon)
    os.kill(first, signal.SIGSTOP)
    monkeypatch.setattr("services.daemon.PATIENCE_S", 1.0)
    monkeypatch.setattr("services.daemon.STOP_S", 1.0)
    monkeypatch.setattr("services.daemon.ANSWER_S", 0.5)
    with pytest.raises(SetupError):
        daemon.launch(lambda port: [sys.executable, "-c", "import time; time.sleep(60)"], {})
    assert daemon.launch(command, {})
    assert pid_of(daemon) != first


def test_one_that_dies_at_once_says_why(daemon: Daemon) -> None:
    with pytest.raises(SetupError, match=r"little server does not start \(no such thing\)"):
        daemon.launch(lambda _port: [sys.executable, "-c", "exit('no such thing')"], {})
    assert daemon.address() is None


def test_stopping_ends_it_and_its_children(daemon: Daemon) -> None:
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    daemon.launch(lambda port: [sys.executable, "-c", parent, SERVER, str(port)], {})
    family = psutil.Process(pid_of(daemon)).children(recursive=True)
    assert family
    assert daemon.stop() is True
    assert daemon.address() is None
    assert not any(child.is_running() for child in family)
    assert daemon.stop() is False


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "began": 0, "port": 0}']
)
def test_a_broken_run_file_is_no_server(daemon: Daemon, text: str) -> None:
    daemon._file.write_text(text)
    assert daemon.address() is None
    assert daemon.launch(command, {})


def test_its_words_go_to_a_log_that_only_the_owner_reads(daemon: Daemon) -> None:
    daemon.launch(command, {})
    assert daemon.log.stat().st_mode & 0o077 == 0
