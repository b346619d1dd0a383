"""A reply that comes in very many pieces, or never ends, costs no more than its length."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda

from domain.errors import ModelError
from models.specs import Structure
from models.structured import request
from tests.contract.test_chat import TURNS, City, chat_of
from tests.support.openai_server import EVERYTHING, OpenAIServer

SCHEMA = City.model_json_schema()
SENT = [{"role": "user", "content": "Where?"}]
PIECES = 3_000
WAYS: list[Structure] = ["json_schema", "tools", "text"]


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
    answer = request(Pieces(), way, SENT, SCHEMA, on_text=output.append)
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
    answer = request(model, way, SENT, SCHEMA, on_text=lambda _: None, max_characters=1_000)
    assert answer.too_long
    assert len(answer.text) == 1_000
    assert model.sent < 300


def test_a_reply_that_comes_whole_is_held_to_the_same_limit() -> None:
    answer = request(Pieces(), "text", SENT, SCHEMA, max_characters=1_000)
    assert answer.too_long
    assert len(answer.text) == 1_000


@pytest.mark.parametrize("live", [True, False])
def test_a_reply_that_is_too_long_is_recorded_and_says_what_to_do(live: bool) -> None:
    records: list[Any] = []
    long = {"name": "Paris " * 1_000}
    with OpenAIServer([long], EVERYTHING) as server:
        chat = chat_of(server, records.append, max_characters=500)
        on_text = list[str]().append if live else None
        with pytest.raises(ModelError, match=r"longer than 500 characters.*max_characters"):
            chat.ask(TURNS, City, purpose="act", on_text=on_text)
    assert len(records[0].reply["text"]) == 500
    assert "500 characters" in records[0].error
