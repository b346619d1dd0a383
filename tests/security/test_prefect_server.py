"""Prefect's server runs commands, so it asks everybody on this machine for its login."""

from __future__ import annotations

import base64
import json
import os
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flows.executors import report_to_prefect
from flows.schedules.kinds import open_schedules
from services.supervisor import PrefectServer, ensure_login, login_file, login_for
from store.embedded import EmbeddedPostgres
from store.home import Home


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("prefect-security")).make()
    yield home
    PrefectServer(home).stop()
    EmbeddedPostgres(home).stop(fast=False)


@pytest.fixture(scope="module")
def server(place: Home) -> str:
    return PrefectServer(place).start()


def status(server: str, path: str, secret: str = "", body: Any = None, **headers: str) -> int:
    """The status of a request; headers are sent as they are, ``Host`` too."""
    host = urlsplit(server)
    connection = HTTPConnection(host.hostname or "", host.port, timeout=30)
    if secret:
        headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
    if body is not None:
        headers["Content-Type"] = "application/json"
    sent = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, sent, headers)
    found = connection.getresponse()
    found.read()
    connection.close()
    return found.status


@pytest.mark.parametrize("secret", ["", "homer:", "homer:guess", "admin:pass"])
def test_who_does_not_know_the_login_reads_and_starts_nothing(server: str, secret: str) -> None:
    assert status(server, "/api/admin/version", secret) == 401
    assert status(server, "/api/deployments/filter", secret, {}) == 401
    assert status(server, "/api/flows/", secret, {"name": "mine"}) == 401


@pytest.mark.parametrize("path", ["/api/events/in", "/api/events/out", "/api/logs/out"])
def test_event_streams_ask_for_the_login_too(server: str, path: str) -> None:
    """A WebSocket that does not log in is closed before it has read or sent an event."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    def listen() -> None:
        with connect(server.replace("http", "ws", 1) + path, proxy=None) as stream:
            stream.send('{"type": "auth", "token": "guess"}')
            stream.recv(timeout=20)

    with pytest.raises((ConnectionClosed, InvalidStatus)):
        listen()


def test_who_knows_it_is_served(server: str, place: Home) -> None:
    assert status(server, "/api/admin/version", ensure_login(place)) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4200", "127.0.0.1.evil.example", ""]
)
def test_no_name_that_others_pointed_here_is_answered(server: str, place: Home, host: str) -> None:
    """DNS rebinding: a page of another site has its name resolve to 127.0.0.1."""
    assert status(server, "/api/admin/version", ensure_login(place), Host=host) == 403
    assert status(server, "/", ensure_login(place), Host=host) == 403


@pytest.mark.parametrize(
    "sent",
    [
        *({"Origin": one} for one in ("http://evil.example", "null", "http://127.0.0.1:1")),
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_other_sites_are_refused(server: str, place: Home, sent: dict[str, str]) -> None:
    assert status(server, "/api/admin/version", ensure_login(place), **sent) == 403
    assert status(server, "/api/flows/", ensure_login(place), {"name": "mine"}, **sent) == 403


def test_no_page_may_show_it_in_a_frame_or_read_it(server: str) -> None:
    found = urllib.request.urlopen(server + "/api/health", timeout=30)  # noqa: S310
    assert found.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert found.headers.get("Access-Control-Allow-Origin") != "*"


def test_its_login_is_random_and_its_owners_alone(server: str, place: Home, tmp_path: Path) -> None:
    assert stat.S_IMODE(login_file(place).stat().st_mode) == 0o600
    assert ensure_login(place) != ensure_login(Home(tmp_path))
    assert len(ensure_login(place)) > 40


def test_no_process_shows_the_login_on_its_command_line(server: str, place: Home) -> None:
    secret = ensure_login(place).partition(":")[2]
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "services.prefect_server" in shown
    assert secret not in shown


def test_a_login_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = ensure_login(home)
    login_file(home).chmod(0o644)
    second = ensure_login(home)
    assert second != first
    assert stat.S_IMODE(login_file(home).stat().st_mode) == 0o600
    login_file(home).write_text("homer:\n")
    assert ensure_login(home) not in {first, second, "homer:"}


def test_a_login_behind_a_link_is_not_used(tmp_path: Path) -> None:
    home, theirs = Home(tmp_path), tmp_path / "theirs"
    theirs.write_text(f"homer:{'a' * 40}\n")
    theirs.chmod(0o600)
    login_file(home).parent.mkdir()
    login_file(home).symlink_to(theirs)
    assert ensure_login(home) != f"homer:{'a' * 40}"
    assert theirs.read_text() == f"homer:{'a' * 40}\n"


def test_the_login_goes_to_no_other_server(server: str, place: Home) -> None:
    assert login_for(place, f"{server}/api") == ensure_login(place)
    assert login_for(place, "http://evil.example/api") is None
    assert login_for(place, f"{server}.evil.example/api") is None


def test_a_run_may_vary_nothing_but_its_parameters(server: str, place: Home) -> None:
    """The pool's job has no command, environment or folder that a deployment or run could set."""
    with open_schedules(place, f"{server}/api") as book:
        pool = book._client.read_work_pool(book.pool)
        assert pool.base_job_template["variables"]["properties"] == {}
        assert "{{" not in json.dumps(pool.base_job_template)
        id_ = book._named("check").id
        wanted: dict[str, Any] = {"command": "touch x", "env": {"A": "b"}, "working_dir": "/"}
        # What a worker makes of the pool's job and of what a run asks for.
        import asyncio

        from prefect.workers.process import ProcessJobConfiguration

        made: Any = asyncio.run(
            ProcessJobConfiguration.from_template_and_values(pool.base_job_template, wanted)
        )
        assert (made.command, made.env, made.working_dir) == (None, {}, None)
    for name, value in wanted.items():
        ask = {"job_variables": {name: value}}
        path = f"/api/deployments/{id_}/create_flow_run"
        assert status(server, path, ensure_login(place), ask) in {409, 422}, name


def test_a_pool_that_was_widened_is_narrowed(server: str, place: Home) -> None:
    with report_to_prefect(place, f"{server}/api"), open_schedules(place, f"{server}/api") as book:
        from prefect.client.schemas.actions import WorkPoolUpdate
        from prefect.workers.process import ProcessWorker

        wide = ProcessWorker.get_default_base_job_template()
        book._client.update_work_pool(book.pool, WorkPoolUpdate(base_job_template=wide))
    with open_schedules(place, f"{server}/api") as book:
        found = book._client.read_work_pool(book.pool).base_job_template
    assert found["variables"]["properties"] == {}


def test_it_does_not_start_without_a_login(tmp_path: Path) -> None:
    """As Compose or Kubernetes may start it with the variable forgotten."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "services.prefect_server", "--port", str(port)],
        env={**clean, "HOMER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "PREFECT_SERVER_API_AUTH_STRING" in done.stderr


def test_a_server_that_was_started_without_a_login_is_replaced(server: str, place: Home) -> None:
    """Its run file has the digest of other settings, so it does not count as running."""
    path = place.run / "prefect.json"
    before = json.loads(path.read_text())
    path.write_text(json.dumps(before | {"settings": "others"}))
    try:
        assert PrefectServer(place).address() is None
    finally:
        path.write_text(json.dumps(before))
    assert PrefectServer(place).address() == server
