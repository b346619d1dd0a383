"""The server of the API as it runs: refused openings, the real process, and how Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from api.access import AccessRules, parse_keys
from api.server import ServerOptions, listening_socket, serve, socket_url
from domain.errors import InputError, SetupError
from store.database import Store, open_store
from store.home import Home
from tests.support.api import WordState, client_of
from tests.support.asking import PARTY, remember_party

ROOT = Path(__file__).parents[2]
KEY = "0123456789abcdef0123"


def test_a_port_that_is_taken_or_no_folder_is_reported(home: Home, tmp_path: Path) -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert socket_url(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(SetupError, match=f"port {port}"):
            serve(home, ServerOptions(port=port), print)
    with pytest.raises(SetupError, match="cannot listen"):
        listening_socket("no.such.host.invalid", 0)
    with pytest.raises(InputError, match="no such folder"):
        serve(home, ServerOptions(folders=(tmp_path / "nothing",)), print)


def test_the_description_teaches_and_needs_nothing_from_elsewhere(store: Store) -> None:
    with client_of(WordState(store, "local"), AccessRules(parse_keys(KEY))) as client:
        schema = client.get("/openapi.json").json()
        page = client.get("/docs")
    operations = [output for ways in schema["paths"].values() for output in ways.values()]
    assert len(operations) >= 14
    for output in operations:
        assert output["summary"]
        assert len(output["description"]) > 30
        assert "default" in output["responses"]
        for parameter in output.get("parameters", ()):
            assert parameter.get("description"), parameter["name"]
    for name, model in schema["components"]["schemas"].items():
        assert model.get("description"), name
    assert schema["components"]["schemas"]["Ask"]["examples"][0]["question"] in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"https?://|<script|\bsrc=", page.text)


def ask(address: str, path: str, key: str = "", body: object = None) -> tuple[int, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_whoever_has_key_is_served_until_ctrl_c(home: Home, database: str, tmp_path: Path) -> None:
    """One process for all of it: it is the only test that sees the real server."""
    with open_store(home, database) as store:
        remember_party(store)
    log = tmp_path / "said"
    given = {"HOMER_DATABASE_URL": database, "HOMER_API_KEY": f"ann:{KEY}"}
    arguments = ["serve", "--port", "0", "--videos", str(tmp_path)]
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", *arguments],
            cwd=ROOT,
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
        )
    try:
        assert process.stdout is not None
        (address,) = re.findall(r"the API is at (\S+);", process.stdout.readline())
        assert ask(address, "/health") == (200, '{"status":"ok"}')
        code, refused = ask(address, "/videos")
        assert (code, json.loads(refused)["code"]) == (401, "key")
        code, output = ask(address, "/videos", KEY)
        assert [one["id"] for one in json.loads(output)["items"]] == [PARTY]
        code, output = ask(address, "/videos/%00", KEY)
        assert code == 404
        # Somebody who is connected and says nothing holds up nothing.
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))):
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    said = log.read_text()
    assert "stopped; unfinished questions can be resumed" in said
    assert KEY not in said
    assert not any(KEY.encode() in one.read_bytes() for one in home.logs.iterdir())
