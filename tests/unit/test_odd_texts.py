"""Texts that no database can hold, wherever they come from, are made fit before they are kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Question
from domain.errors import InputError
from domain.media import Video
from domain.texts import make_storable
from graphs.batch import BatchQuestion, read_questions

ODD = st.text(alphabet=st.characters(exclude_categories=())) | st.binary(max_size=20).map(
    os.fsdecode
)
"""Any characters at all, halves of them too, and names of files that are no UTF-8."""


def video(**more: object) -> Video:
    return Video.model_validate(
        {"id": "0" * 16, "title": "t", "path": None, "duration_ms": 1, **more}
    )


@given(ODD)
def test_what_is_stored_is_utf8_without_nul_and_what_was_fit_stays(text: str) -> None:
    kept = make_storable(text)
    assert b"\x00" not in kept.encode("utf-8")
    assert len(kept) == len(text)
    assert all(a == b or b == "�" for a, b in zip(text, kept, strict=True))
    assert make_storable(kept) == kept


@given(ODD.filter(bool), st.lists(ODD, max_size=3))
def test_a_question_from_anywhere_can_be_stored(text: str, options: list[str]) -> None:
    asked = Question(text=text, videos=("v",), options=tuple(options))
    assert asked.text == make_storable(text)
    assert Question.model_validate_json(asked.model_dump_json()) == asked


@given(ODD)
def test_a_title_is_stored_and_a_path_only_where_it_leads_back(name: str) -> None:
    found = video(title=name, path=f"/videos/{name}")
    assert found.title == make_storable(name)
    assert found.path in (None, f"/videos/{name}")
    assert (found.path is None) == (make_storable(name) != name)


@pytest.mark.parametrize("wrong", [{"title": 3}, {"title": None}, {"path": 3}])
def test_what_is_no_text_is_refused_as_before(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"title|path"):
        video(**wrong)


@pytest.mark.parametrize("as_of", ["1e999", "Infinity", "NaN", "-1", "1e12", '"soon"'])
def test_a_moment_beyond_any_video_is_named_with_its_line(tmp_path: Path, as_of: str) -> None:
    path = tmp_path / "batch.jsonl"
    path.write_text(f'{{"id": 1, "video": "v", "question": "q", "as_of_s": {as_of}}}')
    with pytest.raises(InputError, match=r"batch\.jsonl, line 1: as_of_s: "):
        read_questions(path)


BATCH_LINES = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 9) | st.text(max_size=3),
            "video": st.text(max_size=5),
            "question": st.text(max_size=5),
        },
        optional={
            "options": st.lists(st.text(max_size=3), max_size=28),
            "as_of_s": st.none() | st.floats() | st.integers(),
        },
    ).map(json.dumps)
    | st.text(max_size=20),
    max_size=4,
)


def read(path: Path) -> list[BatchQuestion] | str:
    """The questions, or why there are none."""
    try:
        return read_questions(path)
    except InputError as error:
        return str(error)


@given(BATCH_LINES)
def test_any_batch_file_is_questions_or_a_refusal_that_names_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("batch") / "batch.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = read(path)
    if isinstance(found, str):
        assert str(path) in found
        return
    assert len({one.id for one in found}) == len(found)
    for one in found:
        moment = None if one.as_of_s is None else round(one.as_of_s * 1000)
        asked = Question(text=one.question, videos=("v",), options=one.options, as_of_ms=moment)
        assert (asked.as_of_ms or 0) < 2**63
