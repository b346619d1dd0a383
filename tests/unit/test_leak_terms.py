"""Words by which later memory betrays what was deleted: those that nothing else has said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.delete_span import contains_any, exclusive_words, flatten_text, quotes_any

GONE = ["Ann hides the ruby in the piano", "the code is Nightingale"]
WORDS = st.lists(st.sampled_from(["ruby", "piano", "gate", "code", "garden", "Ann"]), max_size=6)
SHA = "0123456789abcdef" * 4


def test_only_what_nothing_else_has_is_telling() -> None:
    found = exclusive_words(GONE, ["Ann plays the piano", "a code of laws"])
    assert found == {"hides", "ruby", "nightingale"}


def test_common_words_and_tags_tell_nothing() -> None:
    assert exclusive_words(["the <face_3> is in there and it is a"], []) == frozenset()


@given(WORDS, WORDS)
def test_it_is_what_was_said_there_less_what_was_said_elsewhere(
    gone: list[str], elsewhere: list[str]
) -> None:
    found = exclusive_words([" ".join(gone)], [" ".join(elsewhere)])
    assert found == {one.lower() for one in gone} - {one.lower() for one in elsewhere}


@given(WORDS, WORDS)
def test_however_the_texts_are_cut_up_it_is_the_same(gone: list[str], elsewhere: list[str]) -> None:
    assert exclusive_words(gone, elsewhere) == exclusive_words(
        [" ".join(gone)], [" ".join(elsewhere)]
    )


def test_nothing_gone_betrays_nothing() -> None:
    assert exclusive_words([], GONE) == frozenset()
    assert not contains_any("Ann hides the ruby", frozenset())


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
        ("[m12]", True),
        ("m12,s3", True),
        ("m123", False),
        ("m1", False),
        ("am12", False),
        ("M12", False),
        (f"image {SHA}", True),
        (f"image {SHA}0", False),
        ("nothing at all", False),
    ],
)
def test_a_text_quotes_by_whole_references(text: str, output: bool) -> None:
    assert quotes_any(text, (), {"m12", SHA}) is output


def test_words_are_quoted_too() -> None:
    assert quotes_any("the ruby", {"ruby"}, {"m12"})
    assert not quotes_any("the gate", {"ruby"}, {"m12"})


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
