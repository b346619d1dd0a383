"""Batch files: questions are read whatever their words are, and answers are never done twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError, ModelError
from graphs.batch import BatchQuestion, BatchResult, answered_ids, read_questions, write_batch

ODD = st.text(
    st.sampled_from(
        [*"ab \\\"'{}", "\n", "\r", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "é"]
    ),
    min_size=1,
    max_size=12,
)
QUESTIONS = st.lists(
    st.builds(
        BatchQuestion,
        id=st.integers(0, 99) | st.text("abc", min_size=1, max_size=3),
        video=ODD,
        question=ODD,
        options=st.lists(ODD, max_size=3).map(tuple),
        as_of_s=st.none() | st.integers(0, 9_999).map(float),
    ),
    max_size=5,
    unique_by=lambda one: one.id,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batch") / "lines.jsonl"


def lines_of(questions: list[BatchQuestion]) -> list[str]:
    return [json.dumps(one.model_dump(mode="json"), ensure_ascii=False) for one in questions]


@given(QUESTIONS, st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]), st.booleans())
def test_questions_are_read_as_they_were_written(
    place: Path, questions: list[BatchQuestion], end: str, ended: bool
) -> None:
    place.write_bytes((end.join(lines_of(questions)) + (end if ended else "")).encode())
    assert read_questions(place) == questions


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("{", "line 2: line: Invalid JSON"),
        ("[]", "line 2: line: "),
        ('{"id": 1, "video": "v"}', "line 2: question: Field required"),
        (
            '{"id": 1, "video": "v", "question": ""}',
            "line 2: question: String should have at least",
        ),
        ('{"id": 1, "video": "v", "question": "q", "as_of_s": -1}', "line 2: as_of_s: "),
        ('{"id": 1, "video": "v", "question": "q", "asof": 1}', "line 2: asof: Extra inputs"),
        ('{"id": 0, "video": "v", "question": "q"}', "the id 0 comes twice"),
    ],
)
def test_a_line_that_is_none_is_named_and_why(tmp_path: Path, line: str, output: str) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text(f'{{"id": 0, "video": "v", "question": "q"}}\n{line}\n')
    with pytest.raises(InputError) as error:
        read_questions(file)
    assert output in str(error.value)
    assert str(file) in str(error.value)


def test_a_number_and_the_same_digits_as_a_word_are_two_ids(tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text(
        '{"id": 1, "video": "v", "question": "q"}\n{"id": "1", "video": "v", "question": "q"}\n'
    )
    assert [one.id for one in read_questions(file)] == [1, "1"]


def results(ids: list[str | int], text: str = "x") -> Iterator[BatchResult]:
    for n, name in enumerate(ids, 1):
        yield BatchResult(name, {"id": name, "answer": text}, None, n, len(ids))


IDS = st.lists(st.integers(0, 99) | ODD, max_size=6, unique=True)


@given(IDS, ODD)
def test_what_was_written_is_answered(place: Path, ids: list[str | int], text: str) -> None:
    place.unlink(missing_ok=True)
    assert [one.id for one in write_batch(place, results(ids, text))] == ids
    assert answered_ids(place) == set(ids)


@given(IDS, ODD, st.data())
def test_wherever_it_was_torn_the_whole_lines_stay_and_the_rest_can_be_done(
    place: Path, ids: list[str | int], text: str, data: st.DataObject
) -> None:
    place.unlink(missing_ok=True)
    list(write_batch(place, results(ids, text)))
    whole = place.read_bytes()
    torn = whole[: data.draw(st.integers(0, len(whole)))]
    place.write_bytes(torn)
    done = answered_ids(place)
    assert done == set(ids[: torn.count(b"\n")])
    list(write_batch(place, results([one for one in ids if one not in done], text)))
    assert place.read_bytes() == whole


def test_an_answer_is_there_as_soon_as_it_is_reported_of(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "down" / "out.jsonl"
    for n, _ in enumerate(write_batch(file, results([1, 2, 3])), 1):
        assert len(file.read_text().splitlines()) == n


def test_a_question_that_failed_has_no_line_and_is_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    failed = BatchResult("b", None, ModelError("the model did not answer"), 1, 1)
    assert list(write_batch(file, iter([failed]))) == [failed]
    assert answered_ids(file) == set()


@pytest.mark.parametrize(
    "line",
    [
        "my diary",
        "",
        "[]",
        "7",
        "null",
        '{"answer": "x"}',
        '{"id": null}',
        '{"id": 1.5}',
        '{"id": ["a"]}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_file_that_is_no_output_is_refused_and_left_as_it_is(tmp_path: Path, line: str) -> None:
    file = tmp_path / "diary.txt"
    before = f'{{"id": 1}}\n{line}\n{{"id": 2}}\ntorn'.encode(errors="surrogateescape")
    file.write_bytes(before)
    with pytest.raises(InputError, match="line 2 is no answer: name another output"):
        answered_ids(file)
    assert file.read_bytes() == before
