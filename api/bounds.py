"""The limits of every request: how many at a time, how large, how slow; and the net below all."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Refused, answered

MOST_BYTES = 64 * 1024
"""Of a request's body: questions and options are words."""
MOST_REQUESTS = 64
BODY_S = 30.0
"""Seconds that a whole body may take to come, however many its pieces."""

_TOO_LARGE = f"the body is larger than {MOST_BYTES // 1024} KB"


class Bounds:
    """Refuses what is too much; whatever else fails leaves as a problem, and is in the log."""

    def __init__(self, app: ASGIApp, most: int = MOST_REQUESTS) -> None:
        self._app, self._most, self._now = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or says why not."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # Whoever watches over the server asks when it is crowded too; it has a limit of its own.
        counts = scope["path"] != "/health"
        refused = self._refused(scope, counts)
        if refused is not None:
            return await answered(refused)(scope, receive, send)
        self._now += counts
        try:
            await self._held(scope, _Body(receive).receive, send)
        finally:
            self._now -= counts
        return None

    def _refused(self, scope: Scope, counts: bool) -> Refused | None:
        length = Headers(scope=scope).get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:19]) > MOST_BYTES:
            told = "send less: videos are added by path, not by their bytes"
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            return Refused(status, "too-large", _TOO_LARGE, told)
        if counts and self._now >= self._most:
            told = "wait for as many seconds as Retry-After says, and ask again"
            busy = "the server has as many requests as it takes"
            return Refused(HTTPStatus.SERVICE_UNAVAILABLE, "crowded", busy, told)
        return None

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


class _Body:
    """A body that may not grow too large, nor take too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._bytes, self._whole = receive, 0, False
        self._until: float | None = None

    async def receive(self) -> Message:
        """The next piece; after the last one, whatever the client does."""
        if self._whole:
            return await self._receive()
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + BODY_S
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the body did not come") from error
        self._bytes += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._bytes > MOST_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
        return message
