"""Servers on this machine that lead a reader astray: to other hosts, files and protocols."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any, TypeAlias

import pytest

from perception import allowed_hosts
from tests.support.local_servers import serving

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
"""Two hosts of this machine: the one that a user names, and one that he does not."""


def forget_known_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test resolve each host anew, and reach it without a proxy."""
    monkeypatch.setattr(allowed_hosts, "_known_public", set())
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@dataclass(frozen=True)
class Moved:
    """A redirect to somewhere."""

    to: str
    status: int = 302


@dataclass(frozen=True)
class Endless:
    """The same piece for as long as somebody reads."""

    head: bytes
    piece: bytes


Answer: TypeAlias = bytes | int | Moved | Endless


@dataclass
class Site:
    """A server. ``asked`` are the paths that it was asked for."""

    host: str
    port: int
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def site(
    answer: Callable[[str], Answer],
    host: str = HERE,
    headers: Callable[[str], dict[str, str]] = lambda _path: {},
    parts: bool = False,
) -> Iterator[Site]:
    """A server that answers paths; with ``parts`` it gives parts of files."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found_site.asked.append(self.path)
            with suppress(OSError):
                _reply(self, answer(self.path), headers(self.path), parts=parts)

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    with serving(Handler, host) as port:
        found_site = Site(host, port)
        yield found_site


def _reply(
    to: BaseHTTPRequestHandler, found: Answer, headers: dict[str, str], *, parts: bool
) -> None:
    if isinstance(found, Endless):
        to.send_response(200)
        to.end_headers()
        to.wfile.write(found.head)
        while True:
            to.wfile.write(found.piece)
    if isinstance(found, Moved):
        headers, found = {**headers, "Location": found.to}, found.status
    data = found if isinstance(found, bytes) else b""
    asked = re.fullmatch(r"bytes=(\d+)-(\d*)", to.headers.get("Range", ""))
    if parts and asked and data:
        start, last = int(asked[1]), int(asked[2] or len(data) - 1)
        headers = {**headers, "Content-Range": f"bytes {start}-{last}/{len(data)}"}
        found, data = 206, data[start : last + 1]
    to.send_response(found if isinstance(found, int) else 200)
    for name, value in {**headers, "Content-Length": str(len(data))}.items():
        to.send_header(name, value)
    to.end_headers()
    to.wfile.write(data)


class Talker:
    """A TCP server that says its piece to each line that ends with an empty one."""

    def __init__(self, *replies: bytes, host: str = HERE) -> None:
        self._replies, self.heard = list(replies), b""
        self._server = socket.create_server((host, 0))
        self.place = f"{host}:{self._server.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Nobody can connect any more."""
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                with client, suppress(OSError):
                    self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        client.settimeout(5)
        for reply in self._replies:
            asked = b""
            while b"\r\n\r\n" not in asked:
                more = client.recv(4096)
                if not more:
                    return
                asked += more
            self.heard += asked
            number = re.search(rb"CSeq: (\d+)", asked)
            client.sendall(reply.replace(b"NUMBER", number[1] if number else b"0"))
