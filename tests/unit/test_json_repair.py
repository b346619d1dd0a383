from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.json_repair import read_object

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)

plain = st.text(alphabet="abcdefgh xyz0123456789.-", max_size=12)
plain_objects = st.dictionaries(
    st.text(alphabet="abcdefgh_", min_size=1, max_size=6),
    st.recursive(
        st.booleans() | st.none() | st.integers() | plain,
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects)
def test_what_is_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value)) == value


@example({"</think>": {}}, "```json\n{}\n```")
@given(objects, st.sampled_from(["```json\n{}\n```", "Here you are:\n{}\nAnything else?", "{}```"]))
def test_prose_and_fences_around_it_do_not_matter(value: dict[str, Any], around: str) -> None:
    assert read_object(around.replace("{}", json.dumps(value))) == value


@given(plain_objects)
def test_pythons_own_spelling_is_read(value: dict[str, Any]) -> None:
    assert read_object(repr(value)) == value


@given(plain_objects)
def test_trailing_commas_are_stepped_over(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value).replace("}", ",}").replace("]", ", ]")) == value


@given(plain_objects, st.data())
def test_what_was_cut_off_keeps_its_beginning(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text)))]
    found = read_object(cut)
    assert list(found) == list(value)[: len(found)]
    whole = list(found.items())[:-1]
    assert whole == list(value.items())[: len(whole)]


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(read_object(text), dict)


@given(st.text(alphabet="{}[]\"':,\\ ab1nu\n"))
def test_any_heap_of_brackets_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(read_object("{" + text), dict)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': 'it's here', 'b': 1}", {"a": "it's here", "b": 1}),
        ('{"a": "he said "hi" twice", "b": 2}', {"a": 'he said "hi" twice', "b": 2}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": "tab\\tand \\u00e9 and \\q",}', {"a": "tab\tand é and q"}),
        ("{“kind”: “search”}", {"kind": "search"}),
        ("{kind: search, n: 3}", {"kind": "search", "n": 3}),
        ('{"a": [1, 2, {"b": 3}', {"a": [1, 2, {"b": 3}]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": tru', {"a": True}),
        ('{"a": nul', {"a": None}),
        ('{"a": 1, "b"', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a":: 1}', {"a": ": 1"}),
        ('<think>maybe {"a": 0}?</think>{"a": 1}', {"a": 1}),
        ('{"a": {"b": "c"}} and {"x": 1}', {"a": {"b": "c"}}),
        ("{}", {}),
        ("{", {}),
    ],
)
def test_broken_answers_that_can_be_read(text: str, expected: dict[str, Any]) -> None:
    assert read_object(text) == expected


@pytest.mark.parametrize("text", ["", "I do not know.", "[1, 2]", "null", "</think>"])
def test_an_answer_without_an_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        read_object(text)


def test_nesting_beyond_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="too deeply"):
        read_object('{"a":' * 5000)


@pytest.mark.parametrize("odd", ["\\u0000", "\\ud800", "\\udfff!"])
def test_what_no_database_can_hold_is_replaced(odd: str) -> None:
    read = read_object(f'{{"a{odd}": ["b{odd}", {{"c": "d{odd}"}}], "e": 1}}')
    output = json.dumps(read, ensure_ascii=False)
    assert "\x00" not in output
    output.encode()
    assert len(read) == 2
