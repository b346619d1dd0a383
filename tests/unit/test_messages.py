"""Messages as they are sent and recorded, calls that are tried again, replies as they grow."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda

from domain.errors import ModelError
from models import retries
from models.messages import Message, assistant, request_hash, system, to_langchain, to_record, user
from models.retries import CallFailed, call_with_retries, call_with_timeout, waiting_for_servers
from models.specs import Structure
from models.structured import latest_text, request
from tests.contract.test_chat import TURNS, City, chat_of
from tests.support.openai_server import EVERYTHING, OpenAIServer

JPEG = b"\xff\xd8\xff\xe0 picture"
PNG = b"\x89PNG\r\n picture"
SCHEMA: dict[str, Any] = {"type": "object"}
SCHEMA_OF_GROWING = City.model_json_schema()
SENT = [{"role": "user", "content": "Where?"}]
PIECES = 3_000
WAYS: list[Structure] = ["json_schema", "tools", "text"]


def test_messages_without_images_are_role_and_words() -> None:
    turns = [system("Be brief."), user("Who?"), assistant("Anna."), user("Why?")]
    expected = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Anna."},
        {"role": "user", "content": "Why?"},
    ]
    assert to_langchain(turns, []) == expected
    assert to_record(turns, []) == expected


def test_images_go_with_the_last_user_turn() -> None:
    sent = to_langchain([user("Before."), user("Look."), assistant("Yes?")], [JPEG, PNG])
    assert sent[0]["content"] == "Before."
    words, first, second = sent[1]["content"]
    assert words == {"type": "text", "text": "Look."}
    assert first["image_url"]["url"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert second["image_url"]["url"].startswith("data:image/png;base64,")


def test_the_record_names_images_by_digest_and_does_not_hold_them() -> None:
    recorded = to_record([user("Look.")], [JPEG])
    digest = hashlib.sha256(JPEG).hexdigest()
    assert recorded[0]["content"][1] == {"type": "image", "sha256": digest}
    assert "base64" not in json.dumps(recorded)


def test_images_need_a_user_turn() -> None:
    with pytest.raises(ValueError, match="user message"):
        to_langchain([system("Look.")], [JPEG])


def test_the_hash_is_the_same_everywhere() -> None:
    turns = to_record([user("Où?")], [])
    assert request_hash("openai:m", turns, SCHEMA, 0.8) == (
        hashlib.sha256(
            '{"messages":[{"content":"Où?","role":"user"}],"model":"openai:m",'
            '"schema":{"type":"object"},"temperature":0.8}'.encode()
        ).hexdigest()
    )
    assert request_hash("m", turns, SCHEMA, 1) == request_hash("m", turns, SCHEMA, 1.0)


@given(st.lists(st.text(), min_size=1, max_size=3), st.integers(0, 2), st.text())
def test_the_hash_tells_requests_apart(words: list[str], at: int, other: str) -> None:
    turns = [Message(role="user", content=text) for text in words]
    changed = list(turns)
    changed[at % len(turns)] = Message(role="user", content=other)
    same = turns == changed
    first = request_hash("m", to_record(turns, []), SCHEMA, None)
    assert (first == request_hash("m", to_record(changed, []), SCHEMA, None)) is same
    assert first != request_hash("n", to_record(turns, []), SCHEMA, None)
    assert first != request_hash("m", to_record(turns, []), {}, None)
    assert first != request_hash("m", to_record(turns, []), SCHEMA, 0.0)
    assert first != request_hash("m", to_record(turns, [JPEG]), SCHEMA, None)


class ServerSaid(Exception):
    """An error as the clients of model servers raise them."""

    def __init__(self, status: int, retry_after: str | None = None) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        headers = {} if retry_after is None else {"retry-after": retry_after}
        self.response = type("Response", (), {"headers": headers})()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were asked for, none of them taken."""
    pauses: list[float] = []
    monkeypatch.setattr(retries, "JITTER_S", 0.0)
    monkeypatch.setattr("models.retries.time.sleep", pauses.append)
    return pauses


def failing(*errors: Exception | str) -> Callable[[], str]:
    """A call that fails in these ways, one after another, and then answers."""
    left = list(errors)

    def call() -> str:
        step = left.pop(0) if left else "done"
        if isinstance(step, Exception):
            raise step
        return step

    return call


def soon() -> float:
    return time.monotonic() + 60


def test_a_call_that_answers_is_made_once(slept: list[float]) -> None:
    assert call_with_retries(failing("first", "second"), soon(), 5) == "first"
    assert slept == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_busy_servers_are_asked_again_after_growing_pauses(status: int, slept: list[float]) -> None:
    assert call_with_retries(failing(*[ServerSaid(status)] * 3), soon(), 3) == "done"
    assert slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("error", "left_s"),
    [
        *((ServerSaid(status), 60) for status in (400, 401, 404, 422)),
        (OSError("connection refused"), 60),
        # No pause goes past the deadline.
        (ServerSaid(429, "10"), 5),
    ],
)
def test_what_will_not_pass_in_time_is_not_repeated(
    error: Exception, left_s: int, slept: list[float]
) -> None:
    with pytest.raises(CallFailed) as caught:
        call_with_retries(failing(error), time.monotonic() + left_s, 3)
    assert caught.value.status == getattr(error, "status_code", None)
    assert str(error) in str(caught.value)
    assert slept == []


def test_retries_come_to_an_end(slept: list[float]) -> None:
    with pytest.raises(CallFailed) as caught:
        call_with_retries(failing(*[ServerSaid(503)] * 9), soon(), 2)
    assert caught.value.status == 503
    assert len(slept) == 2


def test_a_server_gets_no_longer_pause_than_is_reasonable(slept: list[float]) -> None:
    with waiting_for_servers(print):
        assert call_with_retries(failing(ServerSaid(429, "3600")), soon(), 3) == "done"
    assert slept == [retries.LONGEST_WAIT_S]


@pytest.mark.parametrize("wish", ["²", "soon", "", "-3"])
def test_a_wish_that_is_no_number_of_seconds_is_passed_over(slept: list[float], wish: str) -> None:
    assert call_with_retries(failing(ServerSaid(503, retry_after=wish)), soon(), 5) == "done"
    assert slept == [retries.FIRST_WAIT_S]


def test_the_status_is_found_behind_wrapping_errors() -> None:
    def call() -> str:
        try:
            raise ServerSaid(503)
        except ServerSaid as error:
            raise RuntimeError("the client gave up") from error

    with pytest.raises(CallFailed) as caught:
        call_with_timeout(5, call)
    assert caught.value.status == 503
    assert caught.value.transient


def test_a_call_that_hangs_or_is_too_late_is_given_up() -> None:
    released = threading.Event()
    try:
        with pytest.raises(CallFailed, match=r"no answer within 0\.1 s"):
            call_with_timeout(0.1, lambda: released.wait(30))
        with pytest.raises(CallFailed, match="no answer"):
            call_with_retries(lambda: released.wait(30), time.monotonic() - 1, 3)
    finally:
        released.set()


class Pieces(BaseChatModel):
    """Streams an object with a long text, as text or as a tool's arguments."""

    count: int = PIECES
    in_a_call: bool = False
    sent: int = 0

    @property
    def _llm_type(self) -> str:
        return "pieces"

    def _stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for text in ['{"name": "', *["word "] * self.count, '"}']:
            self.sent += 1
            yield ChatGenerationChunk(message=self._piece(text))

    def _piece(self, text: str) -> AIMessageChunk:
        if not self.in_a_call:
            return AIMessageChunk(content=text)
        name = "City" if self.sent == 1 else None
        return AIMessageChunk(
            content="", tool_call_chunks=[tool_call_chunk(name=name, args=text, id=None, index=0)]
        )

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = '{"name": "' + "word " * self.count + '"}'
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    def with_structured_output(self, schema: Any, **way: Any) -> Any:
        self.in_a_call = way["method"] == "function_calling"
        return self | RunnableLambda(lambda message: message)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_told_of_a_reply_grows_with_its_length(way: Structure) -> None:
    output: list[str] = []
    started = time.process_time()
    answer = request(Pieces(), way, SENT, SCHEMA_OF_GROWING, on_text=output.append)
    took = time.process_time() - started
    whole = '{"name": "' + "word " * PIECES + '"}'
    assert answer.text == output[-1] == whole
    assert all(later.startswith(earlier) for earlier, later in pairwise(output))
    assert sum(map(len, output)) <= 40 * len(whole)
    assert len(output) > 50
    assert took < 5.0


@pytest.mark.parametrize("way", WAYS)
def test_no_more_is_taken_of_a_reply_than_it_may_have(way: Structure) -> None:
    model = Pieces(count=100_000)
    answer = request(
        model, way, SENT, SCHEMA_OF_GROWING, on_text=lambda _: None, max_characters=1_000
    )
    assert answer.too_long
    assert len(answer.text) == 1_000
    assert model.sent < 300


@pytest.mark.parametrize("live", [True, False])
def test_a_reply_that_is_too_long_is_recorded_and_says_what_to_do(live: bool) -> None:
    records: list[Any] = []
    with OpenAIServer([{"name": "Paris " * 1_000}], EVERYTHING) as server:
        chat = chat_of(server, records.append, max_characters=500)
        on_text = list[str]().append if live else None
        with pytest.raises(ModelError, match=r"longer than 500 characters.*max_characters"):
            chat.ask(TURNS, City, purpose="act", on_text=on_text)
    assert len(records[0].reply["text"]) == 500
    assert "500 characters" in records[0].error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("Reason: she says so\nAction: sea", "Action: sea"),
        ('{"', ""),
        ('{"reason": "She opens', "She opens"),
        ('{"reason": "She opens the gate", "que', "She opens the gate"),
        ('{"reason": "x", "query": "the open ga', "the open ga"),
        ('{"subtasks": [{"id": "t1", "text": "Who is', "Who is"),
        ('{"subtasks": [', ""),
        ('```json\n{"answer": "a box"}\n```', "a box"),
        ("{" * 500, ""),
    ],
)
def test_the_words_that_come_now(text: str, words: str) -> None:
    assert latest_text(text) == words


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=3), st.integers(0, 200))
def test_any_beginning_of_a_reply_can_be_shown(reply: dict[str, str], cut: int) -> None:
    assert isinstance(latest_text(json.dumps(reply)[:cut]), str)
