"""A question's events as they happen, in the form of server-sent events (the HTML standard)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api.asking import Coming, RunningQuestion
from api.disconnect import ClientGone, Silence
from api.problems import noted
from domain.people import tags_in_words
from domain.texts import make_storable
from domain.trajectory import PartialReply, RunEvent
from graphs.ask_result import AskResult
from models.json_repair import latest_text

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Nobody keeps it, and no proxy holds it back."""
UNREAD_S = 60.0
"""A client that takes nothing for so long is gone."""
STILL_HERE = b": still searching\n\n"


def wants_events(accept: str) -> bool:
    """Whether an ``Accept`` header asks for events."""
    return any(one.split(";")[0].strip().lower() == MEDIA_TYPE for one in accept.split(","))


class EventStream(Response):
    """Sends a search's events until it ends, or nobody listens any more.

    The first one is there before the response begins, so that what cannot be asked at all has a
    status of its own.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self, search: RunningQuestion, first: Coming, rest: AsyncGenerator[Coming, None]
    ) -> None:
        super().__init__(headers=HEADERS, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._search, self._first, self._rest = search, first, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends all of it. The search itself hears when its client goes."""
        del scope, receive
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._rest), aclosing(self._lines()) as lines:
            with suppress(ClientGone):
                await _taken(send, start)
                async for line in lines:
                    body = {"type": "http.response.body", "body": line, "more_body": True}
                    await _taken(send, body)
                await _taken(send, {"type": "http.response.body", "body": b""})

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        try:
            yield await self._line(self._first)
            async for told in self._rest:
                yield await self._line(told)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - an edge: the status is sent, so it is told as an event
            yield event("problem", noted(error).model_dump(mode="json"))

    async def _line(self, told: Coming) -> bytes:
        match told:
            case Silence():
                return STILL_HERE
            case AskResult():
                answer = await self._search.told(told)
                return event("answer", answer.model_dump(mode="json"))
            case PartialReply():
                return event("words", words_of(told))
            case _:
                return event(told.kind, self._payload(told))

    def _payload(self, told: RunEvent) -> dict[str, Any]:
        payload = told.model_dump(mode="json")
        return {"id": self._search.id, **payload} if told.kind == "question" else payload


async def _taken(send: Send, message: Message) -> None:
    """Sends, and waits until the client takes it; Gone where it does not."""
    try:
        async with asyncio.timeout(UNREAD_S):
            await send(message)
    except TimeoutError as error:
        raise ClientGone from error


def words_of(said: PartialReply) -> dict[str, Any]:
    """What the model writes at the moment, for people."""
    text = tags_in_words(latest_text(said.text))
    return {"round": said.round, "purpose": said.purpose, "text": text}


def event(name: str, payload: dict[str, Any]) -> bytes:
    """One event; JSON is one line, so nothing in it can end the event."""
    data = json.dumps(payload, ensure_ascii=True)
    return make_storable(f"event: {name}\ndata: {data}\n\n").encode()
