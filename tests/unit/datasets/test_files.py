"""Files of others become records, and records questions; none leads out of the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from domain.errors import InputError
from evals.dataset import EvalQuestion
from evals.datasets.files import (
    SECONDS,
    SEVERAL,
    dataset,
    file_in,
    inside,
    letter,
    named,
    question,
    records,
    reject_duplicate_ids,
    root_of,
    video,
    video_in,
    without_labels,
)
from evals.datasets.specifications import Row

ROWS = [{"name": "a", "size": 1}, {"name": "b, c", "size": 2}]


def read_fields(fields: dict[str, Any]) -> tuple[str, tuple[str, ...], float]:
    row = Row("here", fields)
    kinds = row.get(SEVERAL, "kinds", default=())
    return row.text("name"), kinds, row.get(SECONDS, "at", default=0.0)


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".parquet"])
def test_records_keep_their_types(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    if ending == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    else:
        path.write_text(json.dumps(ROWS) if ending == ".json" else "\n".join(map(json.dumps, ROWS)))
    found = list(records(path))
    assert [row for _, _, row in found] == ROWS
    assert [place.rpartition(" ")[2] for _, place, _ in found] == ["1", "2"]
    assert all(place.startswith(str(path)) for _, place, _ in found)


def test_a_table_is_words_and_its_places_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\ufeffname,size\na,1\n"b,\nc",\n', encoding="utf-8")
    assert list(records(path)) == [
        ("", f"{path}, line 2", {"name": "a", "size": "1"}),
        ("", f"{path}, line 4", {"name": "b,\nc"}),
    ]


def test_a_table_may_have_tabs(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_text("name\tsize\na, b\t1\n")
    assert [row for _, _, row in records(path)] == [{"name": "a, b", "size": "1"}]


def test_a_line_with_too_many_cells_keeps_the_named_ones(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name\na,b,c\n")
    ((_, _, fields),) = records(path)
    assert read_fields(fields)[0] == "a"


def test_line_separators_within_a_line_part_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"name": "a\u2028b\x85c"}\n', encoding="utf-8")
    assert [row for _, _, row in records(path)] == [{"name": "a\u2028b\x85c"}]


@pytest.mark.parametrize("name", ["rows.xml", "rows", "rows.json.bak"])
def test_what_is_no_file_of_records_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is none of \.json"):
        records(tmp_path / name)


@pytest.mark.parametrize("found", [[], "a", None, 3])
def test_an_object_is_an_object(found: Any) -> None:
    with pytest.raises(InputError, match=r"x\.json is no object"):
        named(found, "x.json")


@pytest.mark.parametrize(
    ("row", "output"),
    [
        ({}, "here: name is missing"),
        ({"name": ["a"]}, "here: name: "),
        ({"name": "a", "kinds": [1]}, r"here: kinds\.0: "),
        ({"name": "a", "at": float("nan")}, "here: at: "),
        ({"name": "a", "at": -1}, "here: at: "),
    ],
)
def test_a_wrong_field_is_named(row: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output) as error:
        read_fields(row)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given_", "name", "kinds"),
    [
        ({"name": 7}, "7", ()),
        ({"name": None}, "", ()),
        ({"name": 1.5, "kinds": "one"}, "1.5", ("one",)),
        ({"name": "a", "kinds": None}, "a", ()),
        ({"name": "a", "kinds": ["x", "y"], "unknown": 1}, "a", ("x", "y")),
    ],
)
def test_words_may_be_numbers(given_: dict[str, Any], name: str, kinds: tuple[str, ...]) -> None:
    assert read_fields(given_)[:2] == (name, kinds)


def test_the_first_of_several_places_counts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "x.json").touch()
    assert file_in(tmp_path, ["x.json", "deep/x.json"]) == tmp_path / "deep" / "x.json"
    (tmp_path / "x.json").touch()
    assert file_in(tmp_path, ["x.json", "deep/x.json"]) == tmp_path / "x.json"
    with pytest.raises(InputError, match=r"holds no y\.json or z\.json"):
        file_in(tmp_path, ["y.json", "z.json"])


def test_a_file_may_be_meant_itself(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.touch()
    assert file_in(path, ["x.json"]) == path
    assert (root_of(path), root_of(tmp_path)) == (tmp_path, tmp_path)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "..", "a\\..\\..\\x", "", "a\0b"])
def test_a_name_does_not_lead_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"here: .*leads out of the folder"):
        inside(tmp_path, name, "here")
    with pytest.raises(InputError, match=r"here: .*leads out of the folder"):
        video_in(tmp_path, name, "here", ["."])


def test_a_folder_of_the_set_may_not_be_a_link_that_leads_out(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "talk.mp4").touch()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "videos").symlink_to(tmp_path / "out")
    with pytest.raises(InputError, match="leads out"):
        video_in(tmp_path / "set", "talk", "here", ["videos"])


def test_the_folder_itself_may_be_a_link_and_links_within_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "talk.mp4").touch()
    (tmp_path / "real" / "again.mp4").symlink_to(tmp_path / "real" / "talk.mp4")
    (tmp_path / "set").symlink_to(tmp_path / "real")
    assert video_in(tmp_path / "set", "again", "here", ["."]) == tmp_path / "set" / "again.mp4"


def test_a_link_that_turns_in_a_circle_is_no_video(tmp_path: Path) -> None:
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    assert video_in(tmp_path, "loop", "here", ["."]) is None


@pytest.mark.parametrize(
    ("there", "name", "found"),
    [
        ("a.mp4", "a", "a.mp4"),
        ("a.MP4", "a", "a.MP4"),
        ("v/a.webm", "a", "v/a.webm"),
        ("a.mkv", "a.mp4", None),
        ("a.b.mp4", "a.b", "a.b.mp4"),
        ("a", "a", None),
        ("words.srt", "words.srt", "words.srt"),
        ("v/deep/a.mp4", "deep/a.mp4", "v/deep/a.mp4"),
    ],
)
def test_a_video_is_found_any_way(tmp_path: Path, there: str, name: str, found: str | None) -> None:
    path = tmp_path / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert video_in(tmp_path, name, "here", ["v", "."]) == (tmp_path / found if found else None)


@given(name=st.text(max_size=300))
def test_video_lies_within_or_nowhere(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("set")
    (folder / "a.mp4").touch()
    try:
        found = video_in(folder, name, "here", ["videos", "."])
    except InputError:
        return
    assert found is None or found.resolve().is_relative_to(folder.resolve())


def asked(id_: str = "1", **more: Any) -> EvalQuestion:
    return question("here", id=id_, video="v", question="Who?", **more)


@pytest.mark.parametrize(
    ("options", "bare"),
    [
        (["A. Red", "B. Blue"], ("Red", "Blue")),
        (["(A) Red", "(B) Blue"], ("Red", "Blue")),
        (["A) Red", "B) Blue"], ("Red", "Blue")),
        (["A: Red", "B: Blue"], ("Red", "Blue")),
        (["A", "B"], ("", "")),
        (["Red", "Blue"], ("Red", "Blue")),
        (["A. Red", "C. Blue"], ("A. Red", "C. Blue")),
        (["A man", "B movie"], ("A man", "B movie")),
        ([], ()),
    ],
)
def test_letters_are_taken_off_if_all_have_one(options: list[str], bare: tuple[str, ...]) -> None:
    assert without_labels(tuple(options)) == bare


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=26))
def test_labelled_options_come_back(options: list[str]) -> None:
    labelled = [f"{letter(n)}. {one.lstrip()}" for n, one in enumerate(options)]
    assert without_labels(tuple(labelled)) == tuple(one.lstrip() for one in options)


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"options": ("x",) * 27}, "here: options: "),
        ({"as_of_ms": -1}, "here: as_of_ms: "),
        ({"answer": "\0"}, "here: the question: .*NUL"),
        ({"types": ("\udfff",)}, "here: the question: .*half a character"),
        ({"id_": ""}, "here: id: "),
    ],
)
def test_a_question_that_cannot_be_has_its_place(more: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        asked(**more)


@pytest.mark.parametrize("name", ["", "\0", "\ud800"])
def test_a_video_that_cannot_be_is_reported_with_its_place(name: str) -> None:
    with pytest.raises(InputError, match="here: "):
        video("here", name=name)


@given(st.lists(st.sampled_from(["a", "a#2", "b", "a#3", "b#2#2"]), min_size=1, max_size=12))
def test_no_two_questions_share_an_id(ids: list[str]) -> None:
    found = [one.id for one in dataset("set", "here", [], [asked(one) for one in ids]).questions]
    assert len(set(found)) == len(found) == len(ids)
    assert found[0] == ids[0]
    assert all(output.startswith(one) for output, one in zip(found, ids, strict=True))


def test_ones_own_ids_may_not_come_twice() -> None:
    reject_duplicate_ids("here", [asked("1"), asked("2")])
    with pytest.raises(InputError, match="here: the question id '1' comes twice"):
        reject_duplicate_ids("here", [asked("1"), asked("2"), asked("1")])
