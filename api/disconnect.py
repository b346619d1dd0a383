"""Events as long as somebody listens: a client that goes away ends what it asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeVar

from starlette.requests import Request

SILENCE_S = 15.0
"""After so many seconds without an event the listener is told so: proxies hang up on silence."""

T = TypeVar("T")


class ClientGone(Exception):
    """The client went away: nobody waits for the rest."""


class Silence:
    """Nothing came for a while."""


SILENT = Silence()


async def followed(
    events: AsyncGenerator[T, None],
    request: Request,
    closing: asyncio.Event,
    silence_s: float = SILENCE_S,
) -> AsyncGenerator[T | Silence, None]:
    """The events as they come, until there are no more or ``closing`` is set.

    However it ends, ``events`` is closed then, and with it the search that they are of.

    Raises:
        Gone: the client went away.
    """
    gone = asyncio.ensure_future(_left(request))
    closed = asyncio.ensure_future(closing.wait())
    coming = asyncio.ensure_future(anext(events, SILENT))
    try:
        while not closed.done():
            waited = {coming, gone, closed}
            await asyncio.wait(waited, timeout=silence_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ClientGone
            if not coming.done():
                yield SILENT
                continue
            found = coming.result()
            if isinstance(found, Silence):
                return
            coming = asyncio.ensure_future(anext(events, SILENT))
            yield found
    finally:
        gone.cancel()
        closed.cancel()
        await _close(events, coming)


async def _left(request: Request) -> None:
    """Returns when the client has gone; its body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _close(events: AsyncGenerator[T, None], coming: asyncio.Future[T | Silence]) -> None:
    """Ends the events where they are: what waits for the next one is broken off first."""
    coming.cancel()
    with suppress(BaseException):
        await coming
    await events.aclose()
