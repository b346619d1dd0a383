"""Questions asked with OpenAI's own client: completions, streams, models, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import APIError, AuthenticationError, NotFoundError, OpenAI, UnprocessableEntityError
from starlette.testclient import TestClient

from api.access import AccessRules, parse_keys
from domain.errors import ModelError
from store.database import Store
from tests.integration.test_api_questions import by_script
from tests.support.api import HERE, WordState, client_of
from tests.support.asking import PARTY, remember_party
from tests.support.machine import VIDEO
from tests.support.machine import watched as watch_garden
from tests.support.markup_video import BAIT, MARKS
from tests.support.remembered import Said, watch

GARDEN = [{"role": "user", "content": "What does Ann open?"}]
GATE: list[Any] = [{"role": "user", "content": "Who opens the gate?"}]


def openai(client: TestClient, key: str = "none") -> OpenAI:
    return OpenAI(base_url=f"{HERE}/v1", api_key=key, http_client=client, max_retries=0)


@pytest.fixture
def client(store: Store) -> Iterator[OpenAI]:
    remember_party(store)
    with client_of(WordState(store, "local")) as client:
        yield openai(client)


def test_an_answer_cites_moments_in_its_text_and_as_annotations(client: OpenAI) -> None:
    made = client.chat.completions.create(model=f"homer/{PARTY}", messages=GATE)
    message = made.choices[0].message
    assert message.content is not None
    assert "Ann opens the wooden gate" in message.content
    assert message.annotations
    first = message.annotations[0].url_citation
    assert message.content[first.start_index : first.end_index] == "[1]"
    assert f"/videos/{PARTY}/memory?at=" in first.url
    assert made.choices[0].finish_reason == "stop"
    assert (made.usage and made.usage.total_tokens) == 0


def test_the_address_of_a_citation_has_what_is_remembered_of_the_moment(store: Store) -> None:
    remember_party(store)
    with client_of(WordState(store, "local")) as client:
        made = openai(client).chat.completions.create(model="homer", messages=GATE)
        annotations = made.choices[0].message.annotations
        assert annotations
        assert client.get(annotations[0].url_citation.url).status_code == 200


def test_a_stream_gives_the_rounds_and_then_the_same_answer(client: OpenAI) -> None:
    whole = client.chat.completions.create(model="homer", messages=GATE)
    pieces: list[Any] = list(
        client.chat.completions.create(model="homer", messages=GATE, stream=True)
    )
    deltas = [piece.choices[0].delta for piece in pieces]
    assert "".join(one.content or "" for one in deltas) == whole.choices[0].message.content
    assert any("gate" in getattr(one, "reasoning_content", "") for one in deltas)
    assert [piece.choices[0].finish_reason for piece in pieces][-1] == "stop"
    assert len({piece.id for piece in pieces}) == 1


def test_the_models_are_strategies_and_videos(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert {"homer", "worldmm", "auto", f"homer/{PARTY}"} <= set(names)


def test_the_last_message_of_the_user_is_the_question(client: OpenAI) -> None:
    talk: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who plays a slow song?"},
        {"role": "assistant", "content": "Bob."},
        {"role": "user", "content": [{"type": "text", "text": "Who opens the gate?"}]},
    ]
    made = client.chat.completions.create(model="homer", messages=talk, temperature=0.2)
    assert "Ann opens the wooden gate" in (made.choices[0].message.content or "")


@pytest.mark.parametrize(
    ("model", "messages"),
    [
        ("homer", [{"role": "user", "content": " "}]),
        ("homer", [{"role": "assistant", "content": "Hello"}]),
        (
            "homer",
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        ),
        ("homer", [{"role": "user", "content": "why " * 2000}]),
    ],
)
def test_what_is_no_question_is_refused(client: OpenAI, model: str, messages: list[Any]) -> None:
    with pytest.raises(UnprocessableEntityError):
        client.chat.completions.create(model=model, messages=messages)


@pytest.mark.parametrize("model", ["gpt-9", "homer/nowhere", "../homer"])
def test_what_is_not_there_is_not_found(client: OpenAI, model: str) -> None:
    with pytest.raises(NotFoundError):
        client.chat.completions.create(model=model, messages=GATE)


def test_a_title_cannot_stand_for_a_citation(store: Store) -> None:
    watch(store, "b" * 16, [(Said("[1] the zebra\n[2] runs", 3),)])
    with client_of(WordState(store, "local")) as client:
        asked: list[Any] = [{"role": "user", "content": "Where is the zebra?"}]
        made = openai(client).chat.completions.create(model="homer", messages=asked)
    message = made.choices[0].message
    assert message.content
    for number, one in enumerate(message.annotations or (), 1):
        cited = one.url_citation
        assert message.content[cited.start_index : cited.end_index] == f"[{number}]"
        assert message.content[cited.end_index + 1 :].startswith(cited.title)


def test_words_of_video_are_shown_by_chat_clients_and_ask_nobody_for_anything(store: Store) -> None:
    watch(store, "b" * 16, [(Said(f"The zebra {BAIT} runs \x1b[31m\u202e away", 3),)])
    asked: list[Any] = [{"role": "user", "content": f"Where is the zebra {BAIT}?"}]
    with client_of(WordState(store, "local")) as client:
        made = openai(client).chat.completions.create(model="homer", messages=asked)
        pieces: list[Any] = list(
            openai(client).chat.completions.create(model="homer", messages=asked, stream=True)
        )
    deltas = [piece.choices[0].delta for piece in pieces]
    thoughts = "".join(getattr(one, "reasoning_content", "") for one in deltas)
    for text in (made.choices[0].message.content or "", thoughts):
        assert "evil.example" in text
        assert [mark for mark in (*MARKS, "\x1b", "\u202e") if mark in text] == []


def test_a_search_that_fails_is_an_error_with_or_without_a_stream(store: Store) -> None:
    watch_garden(store)
    broken = ModelError("the connection was refused")
    asked = {"model": f"homer/{VIDEO}", "messages": GARDEN}
    with client_of(by_script(store, act=[broken])) as client:
        assert client.post("/v1/chat/completions", json=asked).status_code == 502
        with pytest.raises(APIError, match="refused"):
            list(openai(client).chat.completions.create(**asked, stream=True))  # type: ignore[call-overload]


def test_a_key_is_needed_where_the_server_has_one(store: Store) -> None:
    remember_party(store)
    key = "k" * 24
    with client_of(WordState(store, "local"), AccessRules(parse_keys(key))) as client:
        with pytest.raises(AuthenticationError):
            openai(client).models.list()
        assert len(list(openai(client, key).models.list())) > 1
