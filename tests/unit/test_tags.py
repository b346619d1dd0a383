"""People's tags in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.people import TAG, escape_tags, tags_in_words


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<voice_1>: it rains", "An unnamed speaker: it rains"),
        ("then <face_12> waves", "then an unnamed person waves"),
        ("<character_3> and <voice_0>", "Person 3 and an unnamed speaker"),
        (
            "<face_1> gives <face_2> what <face_1> had of <face_2>",
            "An unnamed person gives another unnamed person what the unnamed person had of "
            "the other unnamed person",
        ),
        (
            "<voice_1> asks <voice_2> and <voice_3>. <voice_3> asks <voice_1>",
            "An unnamed speaker asks another unnamed speaker and another unnamed speaker. "
            "The third unnamed speaker asks the first unnamed speaker",
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
