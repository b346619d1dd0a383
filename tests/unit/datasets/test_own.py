"""Questions of one's own: every way to write them down gives the same question."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from domain.asking import Answer
from domain.errors import InputError, NotFound
from domain.time import TimeSpan
from evals.dataset import Conditions
from evals.datasets import read, sources
from evals.datasets.own import moment
from evals.judging import judge_conditions

ROW: dict[str, Any] = {
    "video": "talk.mp4",
    "question": "Who opens?",
    "options": ["Ann", "Bob"],
    "answer": "Bob",
    "type": ["who"],
    "as_of": 75.5,
    "spans": [[10, 25], [60, 65.5]],
}
TABLE = (
    "video,question,option_a,option_b,answer,type,as_of,spans\n"
    "talk.mp4,Who opens?,Ann,Bob,B,who,1:15.5,0:10-0:25; 1:00-1:05.5\n"
)


def _parquet(path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist([ROW]), path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "wrapped.json", "parquet"])
def test_a_question_is_the_same_however_it_is_written(tmp_path: Path, ending: str) -> None:
    (tmp_path / "talk.mp4").touch()
    path = tmp_path / f"questions.{ending.removeprefix('wrapped.')}"
    written = {
        "csv": TABLE,
        "tsv": TABLE.replace(",", "\t"),
        "jsonl": json.dumps(ROW) + "\n\n",
        "json": json.dumps([ROW]),
        "wrapped.json": json.dumps({"questions": [ROW]}),
    }
    _parquet(path) if ending == "parquet" else path.write_text(written[ending])
    for place in (tmp_path, path):
        found = read("own", place)
        (asked,), (video,) = found.questions, found.videos
        assert (asked.id, asked.video, asked.options) == ("1", "talk.mp4", ("Ann", "Bob"))
        assert (asked.answer, asked.types, asked.as_of_ms) == ("B", ("who",), 75_500)
        assert asked.spans == (TimeSpan.of(10_000, 25_000), TimeSpan.of(60_000, 65_500))
        assert (video.name, video.file) == ("talk.mp4", tmp_path / "talk.mp4")


def test_a_question_needs_no_more_than_a_video_and_words(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("id,video,question,options\n7,gone.mp4,Why?,\n")
    (asked,), (video,) = read("own", tmp_path).questions, read("own", tmp_path).videos
    assert (asked.id, asked.options, asked.answer, asked.as_of_ms) == ("7", (), "", None)
    assert video.file is None


def test_videos_may_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "talk.mkv").touch()
    (tmp_path / "questions.csv").write_text("video,question\ntalk,Why?\ntalk,When?\n")
    (video,) = read("own", tmp_path).videos
    assert video.file == tmp_path / "videos" / "talk.mkv"


@pytest.mark.parametrize("name", ["week.jsonl.gz", "talk.srt", "talk.vtt"])
def test_a_video_may_be_known_by_its_words_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "questions.json").write_text(json.dumps([ROW | {"video": name}]))
    (gone,) = read("own", tmp_path).videos
    (tmp_path / name).touch()
    (here,) = read("own", tmp_path).videos
    assert (gone.file, gone.captions) == (None, None)
    assert (here.file, here.captions) == (None, tmp_path / name)


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({"video": None}, "record 1: video"),
        ({"question": ""}, "record 1: question"),
        ({"answer": "C"}, "record 1: the question: .* none of the options"),
        ({"as_of": "soon"}, "as_of.* not a time"),
        ({"as_of": -1}, "as_of"),
        ({"as_of": 10**400}, "as_of"),
        ({"as_of": True}, "as_of"),
        ({"spans": [[5, 1]]}, "ends"),
        ({"spans": "0:10"}, "a span is a start and an end"),
        ({"options": "[not json"}, "options"),
        ({"options": ["x"] * 27}, "options"),
        ({"question": "\0"}, "NUL"),
        ({"options": ["\ud800", "Bob"]}, "half a character"),
        ({"spans": True}, "spans"),
        ({"video": "../talk.mp4"}, "leads out of the folder"),
        ({"video": "/etc/passwd"}, "leads out of the folder"),
        ({"video": "a\\..\\..\\b.mp4"}, "leads out of the folder"),
        ({"video": "file:///etc/passwd"}, "not an address"),
    ],
)
def test_no_question_is_told_in_a_line(tmp_path: Path, change: dict[str, Any], output: str) -> None:
    (tmp_path / "questions.json").write_text(json.dumps([ROW | change]))
    with pytest.raises(InputError, match=output) as error:
        read("own", tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "questions.json") in str(error.value)


LETTERED = b"video,question,option_a,option_b,option_c\ntalk.mp4,Why?,"
MIXED = b"video,question,option_a,a,option_b\ntalk.mp4,Why?,"
ANSWERED = b"video,question,answer\ntalk.mp4,Why?,"
MORE_CELLS = "line 2: .*more cells than columns: put words with a comma"


@pytest.mark.parametrize(
    ("name", "data", "output"),
    [
        ("questions.json", b"{", "no JSON"),
        ("questions.json", b"[" * 100_000, "no JSON"),
        ("questions.json", b"7", "no list of records"),
        ("questions.json", b"[]", "no question"),
        ("questions.json", b"\xff\xfe\xfa", "cannot be read"),
        ("questions.jsonl", b'{"video": "a", "question": "b"}\n{', "line 2 is no JSON"),
        ("questions.jsonl", b"[1]\n", "line 1: the record"),
        ("questions.csv", b'video,question\n"a', "line"),
        ("questions.csv", b"video,question\na\n", "line 2: question"),
        ("questions.csv", LETTERED + b",x,y\n", "one for each letter, from A on without a gap"),
        ("questions.csv", LETTERED + b"x,,y\n", "one for each letter"),
        ("questions.csv", MIXED + b"x,y,z\n", "one for each letter"),
        ("questions.csv", ANSWERED + b"then?,Ann\n", MORE_CELLS),
        ("questions.parquet", b"PAR1 no", "no Parquet"),
    ],
)
def test_a_broken_file_says_where(tmp_path: Path, name: str, data: bytes, output: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=output):
        read("own", tmp_path)


@pytest.mark.parametrize("columns", ["option_a,option_b,option_c", "options,option_a,option_b"])
def test_empty_cells_at_the_end_are_nothing(tmp_path: Path, columns: str) -> None:
    row = "Yes|No,," if columns.startswith("options,") else "Yes,No,"
    table = f"video,question,{columns}\ntalk.mp4,Why?,{row},,\n"
    (tmp_path / "questions.csv").write_text(table)
    assert read("own", tmp_path).questions[0].options == ("Yes", "No")


@pytest.mark.parametrize("more", [{"options": [1, 2]}, {"options": None, "a": 1, "b": 2}])
def test_options_may_be_numbers(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "questions.json").write_text(json.dumps([ROW | more | {"answer": 2}]))
    (asked,) = read("own", tmp_path).questions
    assert (asked.options, asked.answer) == (("1", "2"), "B")


def test_what_code_is_to_judge_is_read(tmp_path: Path) -> None:
    bare = {"video": "talk.mp4", "question": "Who?"}
    right = {"words": ["Ann|Bob"], "spans_s": [[1, 2.5]], "declined": True}
    (tmp_path / "questions.json").write_text(json.dumps([bare | {"right": right, "kind": "who"}]))
    (asked,) = read("own", tmp_path).questions
    assert asked.right == Conditions(words=("Ann|Bob",), spans_s=((1, 2.5),), declined=True)
    assert asked.types == ("who",)
    assert judge_conditions(asked.right, Answer(text="Carl", confidence=0.5)).right is False
    for odd, output in (({"letter": "A"}, r"letter"), ({"words": ["("]}, "words.*no regular")):
        (tmp_path / "questions.json").write_text(json.dumps([bare | {"right": odd}]))
        with pytest.raises(InputError, match=rf"record 1: right\.{output}"):
            read("own", tmp_path)


def test_ids_are_each_ones_own(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(2 * (json.dumps(ROW | {"id": 3}) + "\n"))
    with pytest.raises(InputError, match="'3' comes twice"):
        read("own", tmp_path)


def test_a_data_set_goes_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"there are .*own"):
        read("owm", tmp_path)
    names = [one.name for one in sources()]
    assert len(names) == len(set(names))
    assert all(one.where and one.licence and one.title for one in sources())


@given(st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.lists(st.integers())))
def test_a_moment_is_a_time_of_a_year_or_refused(value: Any) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= moment(value) <= 366 * 86_400_000
