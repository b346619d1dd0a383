from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.messages import Message, assistant, request_hash, system, to_langchain, to_record, user

JPEG = b"\xff\xd8\xff\xe0 picture"
PNG = b"\x89PNG\r\n picture"
SCHEMA: dict[str, Any] = {"type": "object"}


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
