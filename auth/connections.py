"""Connections of those who have not shown that they may come in: how long and how many they are.

uvicorn waits forever for the first line of a request, and counts whoever waits like whoever asks. A
connection is *waiting* here until its request is admitted: from its beginning, while headers come,
while a body comes that nobody may send, and between requests. A waiting connection is closed after
``WAIT_S`` seconds; and where there are too many connections, the waiting one is closed that has
been there longest, of the address that has most of them. Those who have a key and say at once what
they want are answered, however many others hold connections open.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from h11 import Data, EndOfMessage, Response
from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from auth.headers import with_safe

MOST = 256
"""Connections at a time, event streams among them."""
WAIT_S = 20.0
"""Seconds for a request to come whole and to be admitted, and between two requests."""
_STATE = "homer.connection"


def admit(scope: Scope) -> None:
    """The request may be carried out, and take its time: its connection is waiting no more."""
    connection = scope.get("state", {}).get(_STATE)
    if connection is not None:
        connection.admit()


def allow(scope: Scope, seconds: float) -> None:
    """The request has so long from now on, and is still waiting: others may need its place."""
    connection = scope.get("state", {}).get(_STATE)
    if connection is not None:
        connection.allow(seconds)


class LimitedConnection(H11Protocol):
    """One connection, which is closed when it waits too long or others have need of its place."""

    most, wait_s = MOST, WAIT_S

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _STATE: self}, _loop)
        self._since = 0.0
        self._end: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        """Whether no request of it is admitted."""
        return self._end is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a place, if need be that of a connection that waits."""
        super().connection_made(transport)
        self._wait()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives the place back."""
        self.admit()
        super().connection_lost(exc)

    def admit(self) -> None:
        """What was asked for may take its time."""
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def allow(self, seconds: float) -> None:
        """What waits is closed after so many seconds from now."""
        if self._end is not None:
            self._end.cancel()
            self._end = self.loop.call_later(seconds, self._give_up)

    def on_response_complete(self) -> None:
        """The next request has a time limit of its own; one that was sent along has begun."""
        self.admit()
        self._wait()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """An event stream is let in or refused at once."""
        self.admit()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        """As uvicorn does, with the headers that every response has."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        answer = Response(status_code=400, headers=with_safe(headers), reason=b"Bad Request")
        for piece in (answer, Data(data=msg.encode("ascii")), EndOfMessage()):
            self.transport.write(self.conn.send(piece) or b"")
        self.transport.close()

    def _wait(self) -> None:
        self._since = self.loop.time()
        self._end = self.loop.call_later(self.wait_s, self._give_up)

    def _give_up(self) -> None:
        self._end = None
        self.transport.abort()

    def _make_room(self) -> None:
        if len(self.connections) <= self.most:
            return
        open_now = [one for one in self.connections if not one.transport.is_closing()]
        if len(open_now) > self.most:
            self._least_needed(open_now)._give_up()

    def _least_needed(self, open_now: list[Any]) -> LimitedConnection:
        """The oldest waiting connection of the address with most of them; else this new one."""
        waiting = [one for one in open_now if isinstance(one, LimitedConnection) and one.waiting]
        of = Counter(map(_host, waiting))
        return min(waiting, key=lambda one: (-of[_host(one)], one._since), default=self)


def _host(one: LimitedConnection) -> str:
    return one.client[0] if one.client else ""
