"""People's tags in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.people import TAG, escape_tags, tags_in_words


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<voice_1>: it rains", "An unnamed speaker (voice 1): it rains"),
        ("then <face_12> waves", "then an unnamed person (face 12) waves"),
        (
            "<character_3> and <voice_0>",
            "An unnamed person (character 3) and an unnamed speaker (voice 0)",
        ),
        ("1 < 2 <b> <voice_x> <clip_1>", "1 < 2 <b> <voice_x> <clip_1>"),
        ("Ann waves", "Ann waves"),
    ],
)
def test_people_without_a_name_are_reported_in_words(text: str, output: str) -> None:
    assert tags_in_words(text) == output


@given(st.lists(st.sampled_from(["<face_1>", "<voice_22>", "<", ">", "face_1", "é "])).map("".join))
def test_no_tag_is_left_in_words_nor_in_what_was_said(text: str) -> None:
    assert not TAG.search(tags_in_words(text))
    assert not TAG.search(escape_tags(text))
    assert escape_tags(text).replace("‹", "<").replace("›", ">") == text
