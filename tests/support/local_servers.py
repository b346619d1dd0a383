"""An HTTP server of a test's own, on a free port of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

POLL_S = 0.02
"""How often the server looks whether it is to stop."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Iterator[int]:
    """Serve until the block ends; yields the port."""
    server = ThreadingHTTPServer((host, 0), handler)
    Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
