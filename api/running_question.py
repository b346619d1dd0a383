"""A question that runs for an HTTP client: its slot, its events and its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus

from anyio import to_thread
from starlette.requests import Request

from api.app_state import ApiState
from api.disconnect import NoEvent, until_disconnect
from api.problems import RequestRefused
from domain.asking import Question
from domain.moments import Answered
from domain.trajectory import RunEvent
from graphs.ask_result import AskResult
from graphs.runner import Runner
from graphs.stream import stream
from library.asking import answer_of

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
            HomerError: as ``graphs.ask.ask``.
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
        """Return the body of the answer."""
        return await to_thread.run_sync(answer_of, self._store, result)
