"""Limit concurrent requests, body size and time; turn every other error into a problem."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import PUBLIC_PATHS
from api.problems import RequestRefused, TooManyRequests, problem_response
from auth.connections import admit, extend_wait

MAX_BODY_BYTES = 64 * 1024
"""Size limit of a request's body."""
MAX_REQUESTS = 64
BODY_S = 30.0
"""Seconds within which a whole body must arrive."""
MARGIN_S = 5.0
"""Seconds after that to send the error."""

_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
"""Methods whose body is ignored."""


class RequestLimits:
    """Middleware that refuses excessive requests, and logs and reports unexpected errors.

    A body is read completely before its request counts against the limit, so that slow clients do
    not block others.

    ``body_s``: seconds that a whole body may take, however many its pieces.
    """

    def __init__(
        self, app: ASGIApp, max_requests: int = MAX_REQUESTS, body_s: float | None = None
    ) -> None:
        self._app, self._max_requests, self._active = app, max_requests, 0
        self._body_s = BODY_S if body_s is None else body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with a problem."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            body = await self._body(scope, receive)
        except RequestRefused as refused:
            return await problem_response(refused)(scope, receive, send)
        if body is None:
            return None  # The client has disconnected.
        if scope["path"] not in PUBLIC_PATHS:
            admit(scope)
        # Health checks must work on a busy server too; they have a limit of their own.
        counts = scope["path"] != "/health"
        if counts and self._active >= self._max_requests:
            hint = "wait as many seconds as Retry-After says, and try again"
            detail = "the server has reached its limit of requests"
            return await problem_response(
                RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "crowded", detail, hint)
            )(scope, receive, send)
        self._active += counts
        try:
            messages = [{"type": "http.request", "body": body, "more_body": False}]

            async def receiving() -> Message:
                return messages.pop() if messages else await receive()

            started = False

            async def sending(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await self._app(scope, receiving, sending)
            except Exception as error:  # noqa: BLE001 - an edge: no traceback leaves the server
                failed = problem_response(error)
                if not started:
                    await failed(scope, receiving, send)
        finally:
            self._active -= counts
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the whole body; return None if the client disconnects."""
        length = Headers(scope=scope).get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:19]) > MAX_BODY_BYTES:
            raise _too_large()
        if scope["method"] in _WITHOUT_BODY:
            return b""
        extend_wait(scope, self._body_s + MARGIN_S)
        try:
            async with asyncio.timeout(self._body_s):
                body, more = bytearray(), True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > MAX_BODY_BYTES:
                        raise _too_large()
                return bytes(body)
        except TimeoutError as error:
            hint = "send the body at once; it did not arrive in time"
            detail = "the body did not arrive"
            refused = RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "request-timeout", detail, hint)
            refused.headers = {"Connection": "close"}
            raise refused from error


def _too_large() -> RequestRefused:
    detail = f"the body is larger than {MAX_BODY_BYTES // 1024} KB"
    hint = "send less: videos are added by path, not by their bytes"
    return RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail, hint)


POLL_S = 0.05


class QuestionSlots:
    """Slots for long work; a slot is held until the work ends, also when its client has left.

    ``closing`` is set when the server stops.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closing = asyncio.Event()
        self._in_use, self._lock = 0, threading.Lock()

    def acquire(self) -> None:
        """Acquire a slot, or raise TooManyRequests."""
        with self._lock:
            if self._in_use >= self.limit:
                raise TooManyRequests(f"{self.limit} of these run already, which is the limit")
            self._in_use += 1

    def release(self) -> None:
        """Release a slot, from any thread."""
        with self._lock:
            self._in_use -= 1

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot while the context lasts; raises as ``acquire``."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    @property
    def in_use(self) -> int:
        """Number of slots in use."""
        with self._lock:
            return self._in_use

    async def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no slot is in use; return False after ``timeout_s`` seconds."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.in_use and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_S)
        return not self.in_use
