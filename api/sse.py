"""Stream the events of a question as server-sent events (HTML standard)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api.disconnect import ClientGone, NoEvent
from api.problems import Problem, to_logged_problem
from api.running_question import RunningQuestion, StreamItem
from domain.people import tags_in_words
from domain.texts import make_storable
from domain.time import in_seconds
from domain.trajectory import PartialReply, RunEvent
from graphs.ask_result import AskResult
from models.json_repair import latest_text

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Neither cached nor buffered by proxies."""
SEND_TIMEOUT_S = 60.0
"""A client that reads nothing for so long counts as disconnected."""
KEEP_ALIVE = b": still searching\n\n"


def wants_events(accept: str) -> bool:
    """Return whether an ``Accept`` header asks for events."""
    return any(
        media_range.split(";")[0].strip().lower() == MEDIA_TYPE for media_range in accept.split(",")
    )


class EventStream(Response):
    """Sends the events of a run until it ends or the client disconnects.

    The first event comes before the response starts, so that an invalid question has a status
    code of its own.
    """

    media_type = MEDIA_TYPE

    def __init__(
        self, search: RunningQuestion, first: StreamItem, rest: AsyncGenerator[StreamItem, None]
    ) -> None:
        super().__init__(headers=HEADERS, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._search, self._first, self._rest = search, first, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events; the run itself notices when its client disconnects."""
        del scope, receive
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._rest), aclosing(self._lines()) as lines:
            with suppress(ClientGone):
                await _send(send, start)
                async for line in lines:
                    body = {"type": "http.response.body", "body": line, "more_body": True}
                    await _send(send, body)
                await _send(send, {"type": "http.response.body", "body": b""})

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        try:
            yield await self._line(self._first)
            async for item in self._rest:
                yield await self._line(item)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - an edge: the status is sent, so the error becomes an event
            yield self._problem(to_logged_problem(error))

    def _problem(self, problem: Problem) -> bytes:
        return format_event("problem", problem.model_dump(mode="json"))

    async def _line(self, item: StreamItem) -> bytes:
        match item:
            case NoEvent():
                return KEEP_ALIVE
            case AskResult():
                answer = await self._search.answer_body(item)
                return format_event("answer", answer.model_dump(mode="json"))
            case PartialReply():
                return format_event("words", reply_payload(item))
            case _:
                return format_event(item.kind, self._payload(item))

    def _payload(self, event: RunEvent) -> dict[str, Any]:
        payload = event.model_dump(mode="json")
        return {"id": self._search.id, **payload} if event.kind == "question" else payload


async def _send(send: Send, message: Message) -> None:
    """Send a message; raise ClientGone if the client does not read it in time."""
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await send(message)
    except TimeoutError as error:
        raise ClientGone from error


def reply_payload(reply: PartialReply) -> dict[str, Any]:
    """Return the payload of a partial reply, with people's tags in words."""
    text = tags_in_words(latest_text(reply.text))
    return {"round": reply.round, "purpose": reply.purpose, "text": text}


def format_event(name: str, payload: dict[str, Any]) -> bytes:
    """Format an event, with times in seconds; a line of JSON cannot end the event."""
    data = json.dumps(in_seconds(payload), ensure_ascii=True)
    return make_storable(f"event: {name}\ndata: {data}\n\n").encode()
