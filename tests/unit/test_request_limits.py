"""The limits of requests, and the net below them: whatever fails is told as a problem."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from api import access, problems, sse
from api.access import MAX_BODY_BYTES, QuestionSlots, RequestLimits
from api.problems import TooManyRequests, add_error_handlers, to_problem
from api.routes.health import DatabaseHealth
from api.server import UnfinishedQuestions, closed_at_end
from api.sse import NO_EVENT, ClientGone, ServerStopping, until_disconnect
from domain.errors import (
    Ambiguous,
    BlobGone,
    BudgetExceeded,
    Busy,
    DatabaseError,
    Diverged,
    InputError,
    MediaError,
    ModelError,
    NotFound,
    WeightsMissing,
)
from library.params import AsOf
from tests.support.api import HERE, problem

SECRET = "what Ann said"


class Word(BaseModel):
    word: str


def app_of(most: int = 64) -> FastAPI:
    app = FastAPI(middleware=[Middleware(RequestLimits, max_requests=most)])
    add_error_handlers(app)

    @app.post("/word")
    async def word(body: Word) -> Word:
        return body

    @app.get("/fault")
    async def fault() -> None:
        raise ValueError(SECRET)

    @app.get("/health")
    @app.get("/wait")
    async def wait() -> str:
        await asyncio.sleep(0.1)
        return "there"

    return app


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(app_of(), base_url=HERE) as found:
        yield found


def test_a_body_within_the_limit_is_read_and_one_beyond_it_is_not(client: TestClient) -> None:
    small = {"word": "x" * (MAX_BODY_BYTES - 20)}
    assert client.post("/word", json=small).json() == small
    problem(client.post("/word", json={"word": "x" * MAX_BODY_BYTES}), 413, "too-large")


def test_nor_is_one_that_does_not_say_how_long_it_is(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 1024 + 2):
            yield b" " * 1024

    answer = client.post("/word", content=pieces(), headers={"Content-Type": "application/json"})
    problem(answer, 413, "too-large")


async def silence() -> Any:
    await asyncio.Event().wait()


async def drip() -> Any:
    """Pieces that each come in time, the whole body too late."""
    await asyncio.sleep(0.04)
    return {"type": "http.request", "body": b" " * 4096, "more_body": True}


@pytest.mark.parametrize("receive", [silence, drip])
def test_a_body_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, receive: Callable[[], Any]
) -> None:
    monkeypatch.setattr(access, "BODY_S", 0.1)
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/word",
        "raw_path": b"/word",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1")],
        "scheme": "http",
        "http_version": "1.1",
        "client": None,
        "server": None,
    }

    async def ask() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        await app_of()(scope, receive, send)

    asyncio.run(asyncio.wait_for(ask(), 10))
    assert sent[0]["status"] == 408


def test_a_fault_tells_nothing_of_what_it_was_about(client: TestClient) -> None:
    output = problem(client.get("/fault"), 500, "fault")
    assert SECRET not in str(output)
    assert "log" in output["detail"]


def test_more_requests_than_the_server_takes_are_refused_and_health_is_still_told() -> None:
    async def crowd() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app_of(most=2))
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            paths = ["/health", "/health", "/wait", "/wait", "/wait", "/health"]
            every = list(await asyncio.gather(*(client.get(path) for path in paths)))
            return [*every, await client.get("/wait")]

    *well, third, health, later = asyncio.run(crowd())
    problem(third, 503, "crowded")
    assert third.headers["retry-after"] == "5"
    assert all(one.is_success for one in (*well, health, later))


class Counting:
    """A store that counts how often it is looked at, and is gone."""

    looks = 0

    def begin(self) -> Any:
        self.looks += 1
        time.sleep(0.02)
        raise DatabaseError("gone")


def test_however_many_ask_for_health_the_database_is_looked_at_once() -> None:
    store: Any = Counting()

    async def crowd() -> list[bool]:
        pulse = DatabaseHealth(store)
        return await asyncio.gather(*(pulse.answers() for _ in range(20)))

    assert asyncio.run(crowd()) == [False] * 20
    assert store.looks == 1


def test_who_takes_nothing_of_a_stream_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "SEND_TIMEOUT_S", 0.01)
    ended: list[str] = []

    async def rest() -> Any:
        try:
            while True:
                yield NO_EVENT
        finally:
            ended.append("search")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def run() -> None:
        unread: Any = None
        events = rest()
        response = sse.EventStream(unread, await anext(events), events)
        await asyncio.wait_for(response({}, unread, send), 10)

    asyncio.run(run())
    assert ended == ["search"]


@pytest.mark.parametrize("silent", [True, False])
def test_a_server_that_ends_while_a_model_is_silent_says_so(silent: bool) -> None:
    room, closed = QuestionSlots(1), []
    if silent:
        room.acquire()

    workspace: Any = SimpleNamespace(questions=room, close=lambda: closed.append(True))
    expected = UnfinishedQuestions if silent else KeyboardInterrupt
    with pytest.raises(expected) as output, closed_at_end(workspace):
        raise KeyboardInterrupt
    assert isinstance(output.value, UnfinishedQuestions) == silent
    assert bool(closed) != silent


def test_what_the_server_will_not_do_is_no_error_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[BaseException] = []
    monkeypatch.setattr(problems, "log_error", logged.append)
    gone = DatabaseError("postgresql://me:secret@host/")
    for error in (ServerStopping("3f2a"), gone):
        assert "secret" not in problems.to_logged_problem(error).detail
    assert logged == [gone]


def test_a_wrong_field_is_named_and_what_was_given_is_not_told_back(client: TestClient) -> None:
    output = problem(client.post("/word", json={"word": [SECRET]}), 422, "request")
    assert output["errors"] == [{"where": "body.word", "what": "Input should be a valid string"}]
    assert SECRET not in str(output)
    problem(client.get("/word"), 405, "method-not-allowed")
    problem(client.get("/nowhere"), 404, "not-found")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("x"), 404),
        (Ambiguous("x"), 409),
        (Busy("x"), 409),
        (InputError("x"), 422),
        (MediaError("x"), 422),
        (BlobGone("x"), 503),
        (WeightsMissing("x"), 503),
        (ModelError("x"), 502),
        (BudgetExceeded("x"), 504),
        (TooManyRequests("x"), 429),
        (Diverged("x"), 500),
        (KeyError("x"), 500),
    ],
)
def test_every_error_has_its_status_and_says_what_to_do(error: Exception, status: int) -> None:
    output = to_problem(error)
    assert output.status == status
    assert output.help


def test_a_place_is_free_again_when_its_work_is_over() -> None:
    room = QuestionSlots(1)
    with room.slot(), pytest.raises(TooManyRequests, match="1 of these"):
        room.acquire()
    with pytest.raises(ValueError, match="x"), room.slot():
        raise ValueError("x")
    assert asyncio.run(room.wait_until_idle(0))
    room.acquire()
    assert not asyncio.run(room.wait_until_idle(0.01))


class Client:
    """Stays until it is told to go."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}


def follow(body: Callable[[Any, Client, asyncio.Event, list[str]], Any]) -> list[str]:
    """Runs ``body`` over events that come one at a time; returns what became of them."""
    output: list[str] = []

    async def events() -> Any:
        try:
            for name in "abc":
                await asyncio.sleep(0.005)
                yield name
        finally:
            output.append("closed")

    async def run() -> None:
        client, closing = Client(), asyncio.Event()
        request: Any = client
        await body(until_disconnect(events(), request, closing), client, closing, output)

    asyncio.run(run())
    return output


def test_events_are_followed_to_their_end() -> None:
    async def all_of_it(events: Any, _c: Client, _e: asyncio.Event, output: list[str]) -> None:
        output += [one async for one in events if one is not NO_EVENT]

    assert follow(all_of_it) == ["closed", "a", "b", "c"]


def test_a_client_that_goes_ends_them_and_so_does_a_server_that_closes() -> None:
    async def goes(events: Any, client: Client, _e: asyncio.Event, output: list[str]) -> None:
        output.append(await anext(events))
        client.left.set()
        with pytest.raises(ClientGone):
            await anext(events)

    async def closes(events: Any, _c: Client, closing: asyncio.Event, output: list[str]) -> None:
        output.append(await anext(events))
        closing.set()
        assert len([one async for one in events]) <= 1

    async def leaves(events: Any, _c: Client, _e: asyncio.Event, output: list[str]) -> None:
        output.append(await anext(events))
        await events.aclose()

    assert [follow(one) for one in (goes, closes, leaves)] == [["a", "closed"]] * 3


@pytest.mark.parametrize(
    ("given", "ms"), [(None, None), ("12:30", 750_000), (5, 5000), (0.25, 250), ("0", 0)]
)
def test_moments_are_clocks_or_seconds(given: Any, ms: int | None) -> None:
    assert TypeAdapter(AsOf).validate_python(given) == ms


@pytest.mark.parametrize("given", ["", "x", -1, float("nan"), float("inf"), 1e12, "9" * 30])
def test_what_is_no_moment_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(AsOf).validate_python(given)
