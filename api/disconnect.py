"""Stop a stream of events when its client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeVar

from starlette.requests import Request

KEEP_ALIVE_S = 15.0
"""Seconds without an event before a keep-alive: proxies close silent connections."""

T = TypeVar("T")


class ClientGone(Exception):
    """The client disconnected."""


class NoEvent:
    """No event came for a while: time for a keep-alive."""


NO_EVENT = NoEvent()


async def until_disconnect(
    events: AsyncGenerator[T, None],
    request: Request | None,
    closing: asyncio.Event,
    keep_alive_s: float = KEEP_ALIVE_S,
) -> AsyncGenerator[T | NoEvent, None]:
    """Yield events until they end or ``closing`` is set, then close ``events`` and their run.

    Without a request the client cannot disconnect: who waits for the events is cancelled instead.

    Raises:
        ClientGone: the client disconnected.
    """
    gone = asyncio.ensure_future(_wait_for_disconnect(request))
    closed = asyncio.ensure_future(closing.wait())
    next_event = asyncio.ensure_future(anext(events, NO_EVENT))
    try:
        while not closed.done():
            waiting = {next_event, gone, closed}
            await asyncio.wait(waiting, timeout=keep_alive_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ClientGone
            if not next_event.done():
                yield NO_EVENT
                continue
            event = next_event.result()
            if isinstance(event, NoEvent):
                return
            next_event = asyncio.ensure_future(anext(events, NO_EVENT))
            yield event
    finally:
        gone.cancel()
        closed.cancel()
        await _close_events(events, next_event)


async def _wait_for_disconnect(request: Request | None) -> None:
    """Return when the client has disconnected; without a request, never.

    The body of the request was read before.
    """
    if request is None:
        await asyncio.Event().wait()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _close_events(
    events: AsyncGenerator[T, None], next_event: asyncio.Future[T | NoEvent]
) -> None:
    """Cancel the wait for the next event, and close the events."""
    next_event.cancel()
    with suppress(BaseException):
        await next_event
    await events.aclose()
