"""The limits of every request: how many at a time, how large, how slow; and the net below all."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.auth import OPEN
from api.problems import RequestRefused, answered
from auth.connections import admit, allow

MOST_BYTES = 64 * 1024
"""Of a request's body: questions and options are words."""
MOST_REQUESTS = 64
BODY_S = 30.0
"""Seconds that a whole body may take to come, however many its pieces."""
MARGIN_S = 5.0
"""Seconds after that in which the client is told."""

_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
"""Methods whose body nobody reads."""

_TOO_LARGE = f"the body is larger than {MOST_BYTES // 1024} KB"


class RequestLimits:
    """Refuses what is too much; whatever else fails leaves as a problem, and is in the log.

    A body is read whole before its request takes a place, so that one that comes slowly, or never,
    keeps nobody waiting.

    Args:
        app: what answers.
        most: requests at a time.
        body_s: seconds that a whole body may take, however many its pieces; None: ``BODY_S``.
    """

    def __init__(
        self, app: ASGIApp, most: int = MOST_REQUESTS, body_s: float | None = None
    ) -> None:
        self._app, self._most, self._now = app, most, 0
        self._body_s = BODY_S if body_s is None else body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or says why not."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            body = await self._body(scope, receive)
        except RequestRefused as refused:
            return await answered(refused)(scope, receive, send)
        if body is None:
            return None  # The client has gone.
        if scope["path"] not in OPEN:
            admit(scope)
        # Whoever watches over the server asks when it is crowded too; it has a limit of its own.
        counts = scope["path"] != "/health"
        if counts and self._now >= self._most:
            return await answered(_crowded())(scope, receive, send)
        self._now += counts
        try:
            await self._held(scope, _again(body, receive), send)
        finally:
            self._now -= counts
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None where the client goes away meanwhile."""
        length = Headers(scope=scope).get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:19]) > MOST_BYTES:
            raise _too_large()
        if scope["method"] in _WITHOUT_BODY:
            return b""
        allow(scope, self._body_s + MARGIN_S)
        try:
            async with asyncio.timeout(self._body_s):
                return await _whole(receive)
        except TimeoutError as error:
            told = "send the body at once; it was waited for until its time was over"
            late = "the body did not come"
            refused = RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "request-timeout", late, told)
            refused.headers = {"Connection": "close"}
            raise refused from error

    async def _held(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - an edge: no traceback leaves, with what it quotes
            failed = answered(error)
            if not begun:
                await failed(scope, receive, send)


async def _whole(receive: Receive) -> bytes | None:
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise _too_large()
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, and after it whatever the client does."""
    left = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return left.pop() if left else await receive()

    return receiving


def _too_large() -> RequestRefused:
    told = "send less: videos are added by path, not by their bytes"
    return RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", _TOO_LARGE, told)


def _crowded() -> RequestRefused:
    told = "wait for as many seconds as Retry-After says, and ask again"
    busy = "the server has as many requests as it takes"
    return RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "crowded", busy, told)
