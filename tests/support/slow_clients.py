"""Connections that ask slowly, or never finish asking; and a server to ask, in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import uvicorn

PIECE = b"{"


def head_of(path: str, *lines: str, length: int = 1000) -> bytes:
    """The head of a request with a body; ``length`` is what it says of that."""
    output = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    return "\r\n".join([*output, f"Content-Length: {length}", *lines, "", ""]).encode()


@contextmanager
def held(address: str, count: int, sent: bytes, source: str = "") -> Iterator[list[socket.socket]]:
    """So many connections on which ``sent`` was sent, and nothing follows."""
    to = urlsplit(address)
    with ExitStack() as every:
        made = []
        for _ in range(count):
            one = socket.create_connection(
                (to.hostname or "", to.port or 0), 10, (source, 0) if source else None
            )
            made.append(every.enter_context(one))
            if sent:
                one.sendall(sent)
        time.sleep(0.2)
        yield made


def answer_of(one: socket.socket, within_s: float = 10) -> bytes:
    """All that comes until the server closes, or is silent for so long; b"" for a reset."""
    one.settimeout(within_s)
    found = b""
    try:
        while piece := one.recv(65536):
            found += piece
    except (TimeoutError, ConnectionError):
        pass
    return found


def is_closed(one: socket.socket, within_s: float) -> bool:
    """Whether the server closes the connection in time."""
    one.settimeout(within_s)
    try:
        while one.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@contextmanager
def served(config: uvicorn.Config) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
