"""Events of a search over HTTP: in their form, to whoever listens, and to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from api.sse import (
    KEEP_ALIVE,
    NO_EVENT,
    EventStream,
    RunningQuestion,
    ServerStopping,
    format_event,
    wants_events,
)
from domain.asking import Question
from domain.errors import ModelError
from domain.memories import MemoryView, Scope
from domain.trajectory import Interrupted, PartialReply, QuestionAsked
from tests.support.api import events_in


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; q=0.5", True),
        ("application/json, text/event-stream", True),
        ("application/json", False),
        ("*/*", False),
        ("text/event-streams", False),
        ("", False),
    ],
)
def test_events_are_sent_to_whoever_asks_for_them_by_name(accept: str, wanted: bool) -> None:
    assert wants_events(accept) is wanted


@given(st.text(max_size=40), st.text(max_size=10))
def test_no_words_end_an_event_or_begin_another(words: str, key: str) -> None:
    head, data, *rest = format_event("words", {"text": words, key: "x"}).decode().split("\n")
    assert (head, rest) == ("event: words", ["", ""])
    assert data.isascii()
    assert json.loads(data.removeprefix("data: "))[key] == "x" or key == "text"


class Client:
    """Who asked: goes away when told to, and takes what is sent."""

    def __init__(self) -> None:
        self.left, self.received = asyncio.Event(), list[bytes]()
        self.messages = list[Any]()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)
        self.received.append(message.get("body", b""))

    @property
    def request(self) -> Request:
        return Request({"type": "http"}, self.receive)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return events_in(b"".join(self.received).decode())


class Searching:
    """A search that has nothing to it but its id."""

    id = "aa11"


def sent(*rest: Any, client: Client | None = None, error: Exception | None = None) -> Client:
    """What a client was sent of a question that goes on with ``rest``."""
    client = client or Client()

    async def coming() -> AsyncGenerator[Any, None]:
        for one in rest:
            yield one
        if error is not None:
            raise error

    async def stream() -> None:
        found = EventStream(cast(RunningQuestion, Searching()), Interrupted(round=1), coming())
        assert "content-length" not in found.headers
        await found({"type": "http"}, client.receive, client.send)

    asyncio.run(stream())
    return client


def test_each_event_goes_by_its_kind_and_silence_is_a_comment() -> None:
    client = sent(NO_EVENT, PartialReply(round=1, purpose="act", text="a gate"))
    assert [name for name, _ in client.events] == ["stop", "words"]
    assert client.events[1][1]["text"] == "a gate"
    assert KEEP_ALIVE in client.received
    assert client.received[-1] == b""


def test_the_response_begins_once_and_ends_with_its_last_part() -> None:
    begun, *parts = sent(NO_EVENT).messages
    assert (begun["type"], begun["status"]) == ("http.response.start", 200)
    assert (b"cache-control", b"no-store") in begun["headers"]
    assert [part.get("more_body", False) for part in parts] == [True, True, False]


def test_the_first_event_has_the_id_of_the_question_and_no_other_has() -> None:
    view = MemoryView(scopes=(Scope(video="0123456789abcdef", last_clip=0),))
    question = Question(text="Who?", videos=("0123456789abcdef",))
    asked = QuestionAsked(
        question=question, machine="homer", version=1, profile="local", reasoner="local", view=view
    )
    ids = [output.get("id") for _, output in sent(asked, Interrupted()).events]
    assert ids == [None, "aa11", None]


def test_a_fault_after_the_beginning_is_reported_as_the_last_event() -> None:
    name, problem = sent(error=ModelError("the model did not answer")).events[-1]
    assert (name, problem["status"], problem["code"]) == ("problem", 502, "model")
    assert "did not answer" in problem["detail"]


def test_a_server_that_ends_says_where_the_answer_so_far_is() -> None:
    _, problem = sent(error=ServerStopping("aa11")).events[-1]
    assert (problem["code"], problem["status"]) == ("stopping", 503)
    assert "GET /questions/aa11" in problem["help"]
    _, early = sent(error=ServerStopping("")).events[-1]
    assert "ask again later" in early["help"]
