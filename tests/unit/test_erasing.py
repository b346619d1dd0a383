"""What was said of somebody is erased, and no word by which later memory betrays it is left."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.delete_span import contains_any, exclusive_words, flatten_text, quotes_any
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


GONE = ["Ann hides the ruby in the piano", "the code is Nightingale"]
WORDS = st.lists(st.sampled_from(["ruby", "piano", "gate", "code", "garden", "Ann"]), max_size=6)
SHA = "0123456789abcdef" * 4


def test_only_what_nothing_else_has_is_telling() -> None:
    found = exclusive_words(GONE, ["Ann plays the piano", "a code of laws"])
    assert found == {"hides", "ruby", "nightingale"}


@given(WORDS, WORDS)
def test_it_is_what_was_said_nowhere_else(gone: list[str], elsewhere: list[str]) -> None:
    found = exclusive_words([" ".join(gone)], [" ".join(elsewhere)])
    assert found == {one.lower() for one in gone} - {one.lower() for one in elsewhere}


@given(WORDS, WORDS)
def test_however_the_texts_are_cut_up_it_is_the_same(gone: list[str], elsewhere: list[str]) -> None:
    assert exclusive_words(gone, elsewhere) == exclusive_words(
        [" ".join(gone)], [" ".join(elsewhere)]
    )


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("She spoke of a ruby.", True),
        ("RUBY!", True),
        ("the ruby's glow", True),
        ("rubies", False),
        ("a rubyish red", False),
        ("", False),
    ],
)
def test_a_text_betrays_by_whole_words_in_any_case(text: str, output: bool) -> None:
    assert contains_any(text, {"ruby"}) is output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("as seen in m12", True),
        ("m12,s3", True),
        ("m123", False),
        ("m1", False),
        ("am12", False),
        ("M12", False),
        (f"image {SHA}", True),
        (f"image {SHA}0", False),
    ],
)
def test_a_text_quotes_by_whole_references(text: str, output: bool) -> None:
    assert quotes_any(text, (), {"m12", SHA}) is output


def test_all_texts_of_a_value_are_looked_through_however_deep() -> None:
    value = {"a": ["one", {"b": ("two", 3, None, True)}], "key ruby": 1.5, "c": {"d": []}}
    assert [one for one in flatten_text(value).split("\n") if one] == ["one", "two"]
    assert not contains_any(flatten_text(value), {"ruby"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abcde ", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", max_size=3), inner),
    max_leaves=12,
)


@given(JSON)
def test_no_word_of_a_value_is_missed(value: object) -> None:
    output = flatten_text(value)

    def check(one: object) -> None:
        match one:
            case str():
                assert one in output
            case list():
                list(map(check, one))
            case dict():
                list(map(check, one.values()))

    check(json.loads(json.dumps(value)))
