"""Asking one model: in the strongest way it takes, within limits, with errors that help."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from domain import errors
from domain.errors import ModelError, SetupError
from domain.settings import IMAGE_TOKENS
from models import endpoint
from models.endpoint import TOKEN_STEP, Endpoint, api_key, key_variable, redact_key
from models.keys_and_packages import REDACTED
from models.specs import ChatSpec, Structure
from models.structured import (
    CHARACTERS_A_TOKEN,
    STRUCTURES,
    StructuredReply,
    read_object,
    request,
    structures_from,
)

SCHEMA = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}}
TURNS = [{"role": "user", "content": "Which city?"}]
SPEC = ChatSpec(model="openai:m", max_tokens=2000, retries=0)


class Refused(Exception):
    """A client's error with a status."""

    def __init__(self, status: int, output: str = "refused") -> None:
        super().__init__(output)
        self.status_code = status


class Chain:
    """What a LangChain model with a schema gives."""

    def __init__(self, model: Model, method: str) -> None:
        self.model, self.method = model, method

    def invoke(self, sent: list[dict[str, Any]]) -> dict[str, Any]:
        return {"raw": self.model.answer(self.method, sent)}


class Model:
    """A client that takes some ways of asking: ``ways`` maps each to a message or an error."""

    def __init__(self, **ways: AIMessage | Exception) -> None:
        self.ways = ways
        self.asked: list[str] = []
        self.sent: list[list[dict[str, Any]]] = []

    def answer(self, way: str, sent: list[dict[str, Any]]) -> AIMessage:
        self.asked.append(way)
        self.sent.append(sent)
        given = self.ways.get(way, Refused(400, f"no {way}"))
        if isinstance(given, Exception):
            raise given
        return given

    def with_structured_output(self, schema: Any, *, method: str, include_raw: bool) -> Chain:
        if isinstance(self.ways.get(method), NotImplementedError):
            raise self.ways[method]  # type: ignore[misc]
        return Chain(self, method)

    def invoke(self, sent: list[dict[str, Any]]) -> AIMessage:
        return self.answer("text", sent)


def said(text: Any = '{"name": "Rome"}', **more: Any) -> AIMessage:
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    return AIMessage(content=text, **{"usage_metadata": usage, **more})


def ask(model: Model, spec: ChatSpec = SPEC, **more: Any) -> StructuredReply:
    found = Endpoint(spec, lambda _spec, _heat: model)  # type: ignore[arg-type,return-value]
    return found.send(TURNS, SCHEMA, 0.5, 30.0, **more)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_weaker_way_is_tried_only_after_a_stronger_one(structure: Structure) -> None:
    ways = structures_from(structure)
    assert (ways[0], ways) == (structure, STRUCTURES[-len(ways) :])
    assert ways[-1] == "text"


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        (Model(json_schema=said()), ["json_schema"]),
        (Model(function_calling=said()), ["json_schema", "function_calling"]),
        (Model(text=said()), ["json_schema", "function_calling", "text"]),
        (Model(json_schema=NotImplementedError(), text=said()), ["function_calling", "text"]),
        (Model(json_schema=Refused(501), function_calling=Refused(422), text=said()), None),
    ],
)
def test_strongest_way_that_is_taken_is_remembered(model: Model, asked: list[str] | None) -> None:
    found = Endpoint(SPEC, lambda _spec, _heat: model)  # type: ignore[arg-type,return-value]
    first = found.send(TURNS, SCHEMA, None, 30.0)
    assert read_object(first.text) == {"name": "Rome"}
    assert model.asked == (asked or ["json_schema", "function_calling", "text"])
    model.asked.clear()
    assert found.send(TURNS, SCHEMA, None, 30.0) == first
    assert model.asked == [(asked or ["text"])[-1]]


def test_where_no_way_is_taken_the_first_complaint_is_reported_and_nothing_is_learned() -> None:
    model = Model(json_schema=Refused(400, "the prompt is too long"))
    found = Endpoint(SPEC, lambda _spec, _heat: model)  # type: ignore[arg-type,return-value]
    with pytest.raises(ModelError, match="the prompt is too long"):
        found.send(TURNS, SCHEMA, None, 30.0)
    assert found.structure == "json_schema"


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (said('{"name": "Rome"}'), {"name": "Rome"}),
        (
            said("", tool_calls=[{"name": "City", "args": {"name": "Öl"}, "id": "1"}]),
            {"name": "Öl"},
        ),
        (
            said(
                "",
                invalid_tool_calls=[
                    {"name": "City", "args": "{'name': 'Rome'", "id": "1", "error": "no JSON"}
                ],
            ),
            {"name": "Rome"},
        ),
        (said([{"type": "text", "text": '{"name": '}, {"type": "text", "text": '"Rome"}'}]), None),
    ],
)
def test_the_object_is_read_wherever_the_client_puts_it(message: AIMessage, read: Any) -> None:
    found = ask(Model(json_schema=message))
    assert read_object(found.text) == (read or {"name": "Rome"})
    assert (found.tokens_in, found.tokens_out) == (7, 3)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"response_metadata": {"finish_reason": "SAFETY"}}, "SAFETY"),
        ({"response_metadata": {"stop_reason": "refusal"}}, "refusal"),
        ({"response_metadata": {"prompt_feedback": {"block_reason": "OTHER"}}}, "OTHER"),
        ({"additional_kwargs": {"refusal": "I cannot look at this."}}, "I cannot look at this."),
    ],
)
def test_a_reply_that_is_withheld_for_safety_is_a_refusal(told: dict[str, Any], why: str) -> None:
    with pytest.raises(errors.Refused, match=f"openai:m refuses: .*{why}"):
        ask(Model(json_schema=said("", **told)))


def test_what_no_database_holds_is_taken_out_of_an_answer() -> None:
    assert ask(Model(json_schema=said('{"name": "a\x00b\ud800"}'))).text == '{"name": "a�b�"}'


@given(st.text(max_size=400), st.lists(st.binary(max_size=50), max_size=2))
def test_tokens_are_guessed_from_words_and_the_number_of_images_where_they_are_not_counted(
    words: str, images: list[bytes]
) -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x" * 10_000}} for _ in images]
    turns = [{"role": "user", "content": [{"type": "text", "text": words}, *parts]}]
    model: Any = Model(text=said("Rome", usage_metadata=None))
    found = request(model, "text", turns, SCHEMA)
    asked_for = len(json.dumps([words])) + len(json.dumps(SCHEMA)) + 2000
    assert 1 <= found.tokens_in - len(images) * IMAGE_TOKENS <= asked_for
    assert found.tokens_out == max(1, len("Rome") // CHARACTERS_A_TOKEN)


def test_as_text_the_model_is_told_the_form_or_the_protocol_of_its_own() -> None:
    model: Any = Model(text=said())
    request(model, "text", TURNS, SCHEMA)
    request(model, "text", TURNS, SCHEMA, protocol="Answer in three lines.")
    first, second = (sent[-1]["content"] for sent in model.sent)
    assert json.dumps(SCHEMA) in first
    assert second == "Answer in three lines."
    assert [sent[:-1] for sent in model.sent] == [TURNS, TURNS]


@given(st.integers(-5, 10_000), st.integers(1, 5000))
def test_a_reply_is_never_longer_than_asked_for_and_clients_are_few(limit: int, most: int) -> None:
    made: list[int] = []

    def factory(spec: ChatSpec, heat: float | None) -> Any:
        made.append(spec.max_tokens)
        return Model(json_schema=said())

    found = Endpoint(SPEC.model_copy(update={"max_tokens": most}), factory)
    for asked in (limit, limit, None):
        found.send(TURNS, SCHEMA, None, 30.0, max_tokens=asked)
    assert all(1 <= one <= max(1, most) for one in made)
    assert made[0] <= max(1, limit)
    assert made[0] > min(limit, most) - TOKEN_STEP
    assert len(made) == len(set(made))


def test_a_server_of_this_process_has_a_key_of_its_own() -> None:
    assert key_variable(ChatSpec(model="llama:m")) is None
    assert api_key(ChatSpec(model="llama:m")) == endpoint.KEY


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        (ChatSpec(model="openai:m"), "OPENAI_API_KEY"),
        (ChatSpec(model="google_genai:m"), "GOOGLE_API_KEY"),
        (ChatSpec(model="openai:m", base_url="http://h/v1"), None),
        (ChatSpec(model="openai:m", base_url="http://h/v1", key="MINE"), "MINE"),
        (ChatSpec(model="openai:m", key=""), None),
    ],
)
def test_a_key_is_asked_for_only_where_a_server_wants_one(
    monkeypatch: pytest.MonkeyPatch, spec: ChatSpec, variable: str | None
) -> None:
    assert key_variable(spec) == variable
    if variable is None:
        assert api_key(spec) in (None, "none")
        return
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SetupError, match=f"set the environment variable {variable}"):
        api_key(spec)
    monkeypatch.setenv(variable, "sk-1")
    assert api_key(spec) == "sk-1"
    assert redact_key("a sk-1 b", spec) == f"a {REDACTED} b"
