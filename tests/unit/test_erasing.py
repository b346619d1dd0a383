"""A forgotten person's names and tags leave texts; other words, and other people, stay."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people.names import NameEraser

ADA = NameEraser(["<face_1>", "<voice_12>"], ["Ada Lovelace", "Dr. Ada"], ["Omar Byron"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<face_1> and <face_11> are on screen", "somebody and <face_11> are on screen"),
        ("‹voice_12› spoke, voice_1 did not", "somebody spoke, voice_1 did not"),
        ("ADA LOVELACE / Professor", "somebody / Professor"),
        ("ada lovelace's boats", "somebody's boats"),
        ("Ada met Mrs. Lovelace.", "somebody met Mrs. somebody."),
        ("Dr. Ada opens", "somebody opens"),
        ("The adage of Adaline in Lovelaceville", "The adage of Adaline in Lovelaceville"),
        ("Omar Byron laughs", "Omar Byron laughs"),
        ("", ""),
    ],
)
def test_names_and_tags_are_replaced_and_nothing_else(text: str, left: str) -> None:
    assert ADA.erase(text) == left


def test_a_name_that_others_bear_too_is_theirs() -> None:
    shared = NameEraser([], ["Ada Byron", "Omar"], ["Omar", "Lord Byron"])
    assert (
        shared.erase("Ada Byron and Omar and Byron and Ada")
        == "somebody and Omar and Byron and somebody"
    )


def test_a_name_of_common_words_is_erased_only_where_it_is_written_as_a_name() -> None:
    rose = NameEraser([], ["Rose Will"], [])
    assert (
        rose.erase("Rose rose at dawn; will Will come?")
        == "somebody rose at dawn; will somebody come?"
    )


def test_nobody_to_erase_changes_nothing() -> None:
    assert NameEraser([], [], []).erase("Ada was here") == "Ada was here"
    assert NameEraser(["<face_0>"], [], []).erase("Ada was here") == "Ada was here"


def test_every_text_of_a_json_value_is_erased() -> None:
    value = {"label": "Ada speaks", "clips": [1, 2], "steps": [{"text": "of Ada", "none": None}]}
    assert ADA.erase_json(value) == {
        "label": "somebody speaks",
        "clips": [1, 2],
        "steps": [{"text": "of somebody", "none": None}],
    }


@given(
    st.text("Aadel <>_face1voic2LOV.'", max_size=60),
    st.sampled_from(["Ada", "<face_1>", "ADA LOVELACE"]),
)
def test_whatever_surrounds_a_trace_none_is_left(around: str, trace: str) -> None:
    erased = ADA.erase(f"{around} {trace} {around}")
    assert not re.search(r"(?<!\w)(?:Ada|Lovelace|face_1|voice_12)(?!\w)", erased)
    assert ADA.erase(erased) == erased


@given(st.text(max_size=80))
def test_a_text_without_any_needle_stays_as_it_is(text: str) -> None:
    if not any(needle.casefold() in text.casefold() for needle in ADA.search_terms):
        assert ADA.erase(text) == text
