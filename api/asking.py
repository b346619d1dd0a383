"""A question that is asked over HTTP: its place, its events, its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus

from anyio import to_thread
from starlette.requests import Request

from api.answers import AnswerTold, answer_of
from api.app_state import ApiState
from api.disconnect import Silence, followed
from api.problems import RequestRefused
from domain.asking import Question
from domain.errors import NotFound
from domain.trajectory import RunEvent
from graphs.ask_result import AskResult
from graphs.runner import Runner
from graphs.stream import stream
from store.database import Store
from store.queries.trajectories import find_trajectory

Coming = RunEvent | Silence | AskResult


class Stopping(RequestRefused):
    """The server ends: what was found so far is kept, and can be gone on with."""

    def __init__(self, question: str) -> None:
        kept = f"GET /questions/{question} has what was found" if question else "ask again later"
        told = "the server is being stopped"
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, "stopping", told, kept)


class RunningQuestion:
    """One question that is searched for one client; it has a place until its search is over.

    ``id`` is the trajectory, "" before it is on record.

    Raises:
        Crowded: there is no place.
    """

    def __init__(self, desk: ApiState, request: Request, asker: Runner, question: Question) -> None:
        self.id = ""
        self._store, room = desk.store, desk.questions
        room.take()
        told = stream(asker, question, self._begun, room.give_back)
        self._events = followed(told, request, room.closing)

    def _begun(self, trajectory: str) -> None:
        self.id = trajectory

    async def events(self) -> AsyncGenerator[Coming, None]:
        """Every event and word as it comes, and the answer last.

        Raises:
            Gone: the client went away.
            Stopping: the server ends.
            HomerError: as ``graphs.ask.ask``.
        """
        async with aclosing(self._events) as events:
            async for told in events:
                yield told
                if isinstance(told, AskResult):
                    return
        raise Stopping(self.id)

    async def answer(self) -> AnswerTold:
        """The answer alone; raises what ``events`` does."""
        async with aclosing(self.events()) as events:
            async for told in events:
                if isinstance(told, AskResult):
                    return await self.told(told)
        raise Stopping(self.id)

    async def told(self, asked: AskResult) -> AnswerTold:
        """The answer as it is sent."""
        return await to_thread.run_sync(_told, self._store, asked)


def _told(store: Store, asked: AskResult) -> AnswerTold:
    with store.begin() as session:
        row = find_trajectory(session, asked.trajectory_id)
    told = answer_of(store, row, asked.rounds)
    if told is None:
        raise NotFound(f"question {row.id} has no answer any more")
    return told
