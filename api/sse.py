"""A question that runs for an HTTP client: its slot, its events and its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, TypeVar

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api.door import ApiState
from api.problems import Problem, RequestRefused, to_logged_problem
from domain.asking import Question
from domain.moments import Answered
from domain.people import tags_in_words
from domain.time import in_seconds
from domain.trajectory import PartialReply, RunEvent
from domain.words import make_storable
from graphs.ask_result import AskResult
from graphs.concurrent import stream
from graphs.runner import Runner
from library.answering import answer_of
from models.structured import latest_text

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

    Raises:
        ClientGone: the client disconnected.
    """

    async def disconnect() -> None:
        # The body of the request was read before.
        while request and (await request.receive())["type"] != "http.disconnect":
            pass
        # Who waits for the events is cancelled instead.
        if request is None:
            await asyncio.Event().wait()

    gone = asyncio.ensure_future(disconnect())
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
        next_event.cancel()
        # A generator that is still at work cannot be closed.
        with suppress(BaseException):
            await next_event
        await events.aclose()


StreamItem = RunEvent | NoEvent | AskResult


class ServerStopping(RequestRefused):
    """The server stops: the run is recorded so far, and can be resumed."""

    def __init__(self, question: str) -> None:
        hint = f"GET /questions/{question} has what was found" if question else "ask again later"
        detail = "the server is stopping"
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, "stopping", detail, hint)


class RunningQuestion:
    """The run of one question for one client; it holds a slot until the run ends.

    ``id`` is the trajectory, "" before it is recorded. Without a request the run ends when who
    waits for it is cancelled.

    Raises:
        TooManyRequests: no slot is free.
    """

    def __init__(
        self,
        state: ApiState,
        request: Request | None,
        runner: Runner,
        question: Question,
        strategy: str | None = None,
    ) -> None:
        self.id = ""
        self._store, slots = state.store, state.questions
        slots.acquire()
        events = stream(runner, question, self._begun, slots.release, strategy)
        self._events = until_disconnect(events, request, slots.closing)

    def _begun(self, trajectory: str) -> None:
        self.id = trajectory

    async def events(self) -> AsyncGenerator[StreamItem, None]:
        """Yield events and partial replies as they come, and the result last.

        Raises:
            ClientGone: the client disconnected.
            ServerStopping: the server stops.
            HomerError: as ``graphs.runner.Runner.ask``.
        """
        async with aclosing(self._events) as events:
            async for item in events:
                yield item
                if isinstance(item, AskResult):
                    return
        raise ServerStopping(self.id)

    async def answer(self) -> Answered:
        """Wait for the answer; raises what ``events`` does."""
        async with aclosing(self.events()) as events:
            async for item in events:
                if isinstance(item, AskResult):
                    return await self.answer_body(item)
        raise ServerStopping(self.id)

    async def answer_body(self, result: AskResult) -> Answered:
        return await to_thread.run_sync(answer_of, self._store, result)


# Stream the events of a question as server-sent events (HTML standard).

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Neither cached nor buffered by proxies."""
SEND_TIMEOUT_S = 60.0
"""A client that reads nothing for so long counts as disconnected."""
KEEP_ALIVE = b": still searching\n\n"


def wants_events(accept: str) -> bool:
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
        # How long it will be is not known before it ends.
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
                text = tags_in_words(latest_text(item.text))
                words = {"round": item.round, "purpose": item.purpose, "text": text}
                return format_event("words", words)
            case _:
                payload = item.model_dump(mode="json")
                if item.kind == "question":
                    payload = {"id": self._search.id, **payload}
                return format_event(item.kind, payload)


async def _send(send: Send, message: Message) -> None:
    """Send a message; raise ClientGone if the client does not read it in time."""
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await send(message)
    except TimeoutError as error:
        raise ClientGone from error


def format_event(name: str, payload: dict[str, Any]) -> bytes:
    """Format an event, with times in seconds; a line of JSON cannot end the event."""
    data = json.dumps(in_seconds(payload), ensure_ascii=True)
    return make_storable(f"event: {name}\ndata: {data}\n\n").encode()
