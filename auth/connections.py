"""Where the app may listen, how many connections wait there how long, and responses' headers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from h11 import Data, EndOfMessage, Response
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

CSP = "content-security-policy"
NO_FRAMES = "frame-ancestors 'none'"
SAFE_HEADERS = {
    CSP: NO_FRAMES,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response that does not set them itself."""
SANDBOX = "default-src 'none'; sandbox"
"""The policy of what is no page: a file of somebody's, in which nothing runs, whatever it holds."""
STREAMLIT_FILES = "/media/"
_START_MESSAGES = ("http.response.start", "websocket.http.response.start")


class SafeHeaders:
    """Add ``SAFE_HEADERS`` to every response, also to that of a refused WebSocket.

    Args:
        policy: the content security policy of responses that have none of their own.
    """

    def __init__(self, app: ASGIApp, policy: str = NO_FRAMES) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusable = "websocket.http.response" in scope.get("extensions", {})
        own = SANDBOX if scope["path"].startswith(STREAMLIT_FILES) else self._policy
        safe, started = {**SAFE_HEADERS, CSP: own}, False

        async def send_safe(message: Message) -> None:
            nonlocal started
            if message["type"] == "websocket.close" and not started and refusable:
                # Otherwise the server would respond without these headers.
                why = message.get("reason") or "refused"
                return await PlainTextResponse(why, 403)(scope, receive, send_safe)
            started = True
            if message["type"] in _START_MESSAGES:
                raw = list(message.get("headers", ()))
                if scope.get("scheme") in ("https", "wss"):
                    # The browser sends them by TLS only; Streamlit's own lack that.
                    for place, (name, cookie) in enumerate(raw):
                        if name.lower() == b"set-cookie" and b"; secure" not in cookie.lower():
                            raw[place] = (name, cookie + b"; Secure")
                message = {**message, "headers": with_safe_headers(raw, safe)}
            return await send(message)

        return await self._app(scope, receive, send_safe)


def with_safe_headers(
    raw: Iterable[tuple[bytes, bytes]], safe: Mapping[str, str] = SAFE_HEADERS
) -> list[tuple[bytes, bytes]]:
    """Add missing headers; a policy is extended to forbid frames."""
    headers = MutableHeaders(raw=[(name.lower(), value) for name, value in raw])
    for name, value in safe.items():
        headers.setdefault(name, value)
    if "frame-ancestors" not in headers[CSP]:
        headers[CSP] = f"{headers[CSP].rstrip('; ')}; {NO_FRAMES}"
    return headers.raw


def same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a page of the same host, or from no page.

    Browsers send no ``Origin`` with what an ``<img>`` asks for, but ``Sec-Fetch-Site``. A link may
    be followed from anywhere, such as to a shared answer, or from a provider after the sign-in.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    if site not in ("same-origin", "none") and opened != ("navigate", "document"):
        return False
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:  # http://[
        return False


MAX_CONNECTIONS = 256
"""Limit of concurrent connections, including event streams."""
# uvicorn waits forever for the first line of a request, and counts idle connections like active
# ones. Here a connection is *waiting* until its request is admitted: from its beginning, while
# headers arrive, while an unauthenticated body arrives, and between requests. A waiting connection
# is closed after this. When there are too many connections, the oldest waiting one is closed, of
# the address with the most of them. So clients with a key are served, however many other
# connections are open.
WAIT_TIMEOUT_S = 20.0
"""Seconds for a request to arrive and be admitted, and between two requests."""
_STATE_KEY = "homer.connection"


def admit(scope: Scope) -> None:
    """Admit a request: its connection is no longer waiting, and may take its time."""
    connection = scope.get("state", {}).get(_STATE_KEY)
    if connection is not None:
        connection.admit()


def extend_wait(scope: Scope, seconds: float) -> None:
    """Give a waiting request ``seconds`` from now; it may still be closed for others."""
    connection = scope.get("state", {}).get(_STATE_KEY)
    if connection is not None:
        connection.extend_wait(seconds)


class LimitedConnection(H11Protocol):
    """An HTTP connection that is closed when it waits too long, or when there are too many."""

    max_connections, wait_timeout_s = MAX_CONNECTIONS, WAIT_TIMEOUT_S

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _STATE_KEY: self}, _loop)
        self._waiting_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        """Whether no request is admitted."""
        return self._timer is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait, and close another waiting connection if there are too many."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) <= self.max_connections:
            return
        open_now = [
            connection for connection in self.connections if not connection.transport.is_closing()
        ]
        if len(open_now) > self.max_connections:
            # The oldest waiting connection of the address with most of them, else this one.
            waiting = [
                connection
                for connection in open_now
                if isinstance(connection, LimitedConnection) and connection.waiting
            ]
            counts = Counter(map(_host, waiting))
            to_close = min(
                waiting,
                key=lambda connection: (-counts[_host(connection)], connection._waiting_since),
                default=self,
            )
            to_close._abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self.admit()
        super().connection_lost(exc)

    def admit(self) -> None:
        """Stop the timer: the request may take its time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def extend_wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self.loop.call_later(seconds, self._abort)

    def on_response_complete(self) -> None:
        """Start to wait again: the next request has a time limit of its own."""
        self.admit()
        self._wait()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Admit a WebSocket: it is accepted or refused at once."""
        self.admit()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        """Respond as uvicorn does, with the safe headers."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        response = Response(
            status_code=400, headers=with_safe_headers(headers), reason=b"Bad Request"
        )
        for event in (response, Data(data=msg.encode("ascii")), EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        self._waiting_since = self.loop.time()
        self._timer = self.loop.call_later(self.wait_timeout_s, self._abort)

    def _abort(self) -> None:
        self._timer = None
        self.transport.abort()


def _host(connection: LimitedConnection) -> str:
    return connection.client[0] if connection.client else ""
