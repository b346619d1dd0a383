"""Files that people write: batches, skills and lists, whatever their words are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.asking import Question
from domain.errors import InputError, ModelError
from domain.media import Video
from domain.skills import Skill, Tone, Topic
from domain.words import make_storable
from flows.schedules.work import _read_addresses
from graphs.concurrent import BatchQuestion, BatchResult, answered_ids, read_questions, write_batch
from skills.library import read_skills, write_skills
from tests.support.full_suite import examples
from tests.support.skills import a_skill

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
IDS = st.lists(st.integers(0, 99) | ODD, max_size=6, unique=True)
ODD_OF_TEXTS = st.text(alphabet=st.characters(exclude_categories=())) | st.binary(max_size=20).map(
    os.fsdecode
)
"""Any characters at all, halves of them too, and names of files that are no UTF-8."""


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
        '{"answer": "x"}',
        '{"id": null}',
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


TOML = """
[[skills]]
name = "look-twice"
topic = "mode"
description = "Questions about who was there"
instructions = ["Look at two moments."]
"""
WORDS = st.text(min_size=1, max_size=20).filter(lambda text: len(make_storable(text)) > 0)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_list_has_an_address_a_line_and_remarks(tmp_path: Path, begin: str, end: str) -> None:
    file = tmp_path / "urls.txt"
    lines = ["https://a.example/feed", "# mine", "", "  https://b.example/#top  ", "  # no"]
    file.write_bytes(f"{begin}{end.join(lines)}".encode())
    assert _read_addresses(file) == ["https://a.example/feed", "https://b.example/#top"]


def test_no_list_has_no_addresses() -> None:
    assert _read_addresses(None) == []


def test_a_list_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_bytes(b"\xff\xfe\x00 no text")
    for name in ("urls.txt", "nothing.txt", "."):
        with pytest.raises(InputError, match="cannot be read"):
            _read_addresses(tmp_path / name)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_skills_are_read_as_people_write_them(tmp_path: Path, begin: str) -> None:
    (tmp_path / "mine.toml").write_bytes(f"{begin}{TOML}".encode())
    (one,) = read_skills(tmp_path / "mine.toml")
    assert (one.name, one.topic, one.version) == ("look-twice", Topic.MODE, 1)
    as_json = json.dumps({"skills": [one.model_dump(mode="json")]})
    (tmp_path / "mine.json").write_bytes(f"{begin}{as_json}".encode())
    assert read_skills(tmp_path / "mine.json") == [one]


SKILLS = st.builds(
    a_skill,
    name=st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True).filter(lambda n: len(n) <= 60),
    version=st.integers(1, 99),
    tone=st.sampled_from(Tone),
    description=WORDS,
    triggers=st.lists(WORDS, max_size=3).map(tuple),
    instructions=st.lists(WORDS, min_size=1, max_size=3).map(tuple),
)


@settings(max_examples=examples(15, 30))
@given(st.lists(SKILLS, min_size=1, max_size=4, unique_by=lambda one: one.name))
def test_what_is_exported_is_imported_as_it_was(place_of_lists: Path, skills: list[Skill]) -> None:
    write_skills(place_of_lists, skills)
    assert read_skills(place_of_lists) == skills


@pytest.fixture(scope="module")
def place_of_lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("skills") / "skills.json"


def written(*skills: dict[str, Any]) -> str:
    base = a_skill().model_dump(mode="json")
    return json.dumps({"skills": [base | one for one in skills]})


@pytest.mark.parametrize(
    ("name", "text", "output"),
    [
        ("s.json", "{", "cannot be read as skills"),
        ("s.toml", "= 1", "cannot be read as skills"),
        ("s.json", "[" * 100_000, "cannot be read as skills"),
        ("s.json", "[]", "has no skills: each is a table"),
        ("s.json", '{"skills": []}', "has no skills in it"),
        ("s.json", written({}, {}), "has 'order-of-events' twice"),
        ("s.json", written({"name": "Not Right"}), "skill 0.name: "),
        ("s.json", written({"name": "a"}, {"name": "b", "topic": "?"}), "skill 1.topic: "),
        ("s.json", written({"about": "x"}), "skill 0.about: "),
    ],
)
def test_what_is_no_skill_has_its_place(tmp_path: Path, name: str, text: str, output: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_skills(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert output in str(error.value)


def video(**more: object) -> Video:
    return Video.model_validate(
        {"id": "0" * 16, "title": "t", "path": None, "duration_ms": 1, **more}
    )


@given(ODD_OF_TEXTS)
def test_what_is_stored_is_utf8_without_nul_and_what_was_fit_stays(text: str) -> None:
    kept = make_storable(text)
    assert b"\x00" not in kept.encode("utf-8")
    assert len(kept) == len(text)
    assert all(a == b or b == "�" for a, b in zip(text, kept, strict=True))
    assert make_storable(kept) == kept


@given(ODD_OF_TEXTS.filter(bool), st.lists(ODD_OF_TEXTS, max_size=3))
def test_a_question_from_anywhere_can_be_stored(text: str, options: list[str]) -> None:
    asked = Question(text=text, videos=("v",), options=tuple(options))
    assert asked.text == make_storable(text)
    assert Question.model_validate_json(asked.model_dump_json()) == asked


@given(ODD_OF_TEXTS)
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


def read(path: Path) -> list[BatchQuestion] | str:
    """The questions, or why there are none."""
    try:
        return read_questions(path)
    except InputError as error:
        return str(error)


@given(
    st.lists(
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
)
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
