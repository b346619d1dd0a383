"""What a person reads of a reply that is still being written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.json_repair import latest_text


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
        ('{"round": 3', ""),
        ('```json\n{"answer": "a box"}\n```', "a box"),
        ("{" * 500, ""),
    ],
)
def test_the_words_that_come_now(text: str, words: str) -> None:
    assert latest_text(text) == words


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=3), st.integers(0, 200))
def test_any_beginning_of_a_reply_can_be_shown(reply: dict[str, str], cut: int) -> None:
    assert isinstance(latest_text(json.dumps(reply)[:cut]), str)
