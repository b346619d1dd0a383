"""Data sets of one's own and of others: a copy is read or told of in a line, and counted."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner, Result

from cli.main import app
from domain.asking import Answer
from domain.errors import InputError, NotFound
from domain.time import TimeSpan
from evals.dataset import Conditions, DatasetSource
from evals.datasets import Census, census, read, source, sources
from evals.datasets.specifications import moment
from evals.judging import judge_conditions
from tests.support.datasets import EXAMPLES, PARQUET, ROBOT_QA, STREAMING, Files, lay, mme, robot

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
LETTERED = b"video,question,option_a,option_b,option_c\ntalk.mp4,Why?,"
MIXED = b"video,question,option_a,a,option_b\ntalk.mp4,Why?,"
MORE_CELLS = "line 2: .*more cells than columns: put words with a comma"
JSON_FILES = sorted(
    name for name, files in EXAMPLES.items() if all(".json" in path for path in files)
)
README = Path(__file__).parents[3] / "README.md"


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
        ({"spans": [[5, 1]]}, "ends"),
        ({"spans": "0:10"}, "a span is a start and an end"),
        ({"options": "[not json"}, "options"),
        ({"video": "../talk.mp4"}, "leads out of the folder"),
        ({"video": "file:///etc/passwd"}, "not an address"),
    ],
)
def test_no_question_is_told_in_a_line(tmp_path: Path, change: dict[str, Any], output: str) -> None:
    (tmp_path / "questions.json").write_text(json.dumps([ROW | change]))
    with pytest.raises(InputError, match=output) as error:
        read("own", tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "questions.json") in str(error.value)


@pytest.mark.parametrize(
    ("name", "data", "output"),
    [
        ("questions.json", b"{", "no JSON"),
        ("questions.json", b"[" * 100_000, "no JSON"),
        ("questions.json", b"7", "no list of records"),
        ("questions.json", b"[]", "no question"),
        ("questions.json", b"\xff\xfe\xfa", "cannot be read"),
        ("questions.jsonl", b'{"video": "a", "question": "b"}\n{', "line 2 is no JSON"),
        ("questions.csv", b'video,question\n"a', "line"),
        ("questions.csv", b"video,question\na\n", "line 2: question"),
        ("questions.csv", LETTERED + b",x,y\n", "one for each letter, from A on without a gap"),
        ("questions.csv", MIXED + b"x,y,z\n", "one for each letter"),
        ("questions.csv", b"video,question,answer\ntalk.mp4,Why?," + b"then?,Ann\n", MORE_CELLS),
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
    (tmp_path / "questions.csv").write_text(f"video,question,{columns}\ntalk.mp4,Why?,{row},,\n")
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


def test_every_data_set_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(one.name for one in sources())


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_small_copy_is_read(tmp_path: Path, name: str) -> None:
    found = read(name, lay(tmp_path, EXAMPLES[name]))
    assert found.name == name
    assert {one.video for one in found.questions} <= {video.name for video in found.videos}
    ids = [one.id for one in found.questions]
    assert len(set(ids)) == len(ids) > 0
    assert all(video.file is None for video in found.videos)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"streamingbench", "mm-lifelong"}))
def test_the_file_of_questions_may_be_named_itself(tmp_path: Path, name: str) -> None:
    lay(tmp_path, EXAMPLES[name])
    whole, alone = read(name, tmp_path), read(name, tmp_path / next(iter(EXAMPLES[name])))
    assert whole.questions == alone.questions


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_empty_folder_says_which_file_it_should_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as error:
        read(name, tmp_path)
    first = Path(next(iter(EXAMPLES[name]))).name
    assert first in str(error.value) or "questions" in str(error.value)
    with pytest.raises(InputError, match="no folder") as gone:
        read(name, tmp_path / "gone")
    assert source(name).where in str(gone.value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_of_something_else_is_reported(tmp_path: Path, name: str) -> None:
    for path in EXAMPLES[name]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"\x00\xff{not,what\nit,is")
    with pytest.raises(InputError) as error:
        read(name, tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of a tree, as its parent and its key."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "../../x", "/x", "\0", "\ud800", "DAY0", "99:99:99", "[" * 300, 10**30]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)


@given(name=st.sampled_from(sorted(STREAMING)), data=st.data())
def test_a_line_of_a_table_with_an_odd_cell_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    row = dict(STREAMING[name][0])
    field = data.draw(st.sampled_from(list(row)))
    row[field] = data.draw(cells | st.sampled_from(["[1]", "(1,)", "['A. x', 'B. y']", "1:99"]))
    folder = lay(tmp_path_factory.mktemp("odd"), {name: [row]})
    try:
        assert len(read("streamingbench", folder).questions) == 1
    except InputError as error:
        output = str(error)
        assert (f"{name}, line " in output, "\n" not in output) == (True, True)


@given(field=st.sampled_from(list(mme("001", "short"))), value=odd)
def test_a_row_of_parquet_with_an_odd_cell_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: Any
) -> None:
    row = mme("001", "short") | {field: value}
    folder = tmp_path_factory.mktemp("odd")
    try:
        lay(folder, {PARQUET: [row]})
    except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError, NotImplementedError):
        assume(False)
    try:
        assert len(read("video-mme", folder).questions) == 1
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(JSON_FILES), data=st.data())
def test_a_record_with_an_odd_field_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    files = copy.deepcopy(EXAMPLES[name])
    holder, key = data.draw(st.sampled_from(list(_places(files[next(iter(files))]))))
    if data.draw(st.booleans()):
        holder[key] = data.draw(odd)
    else:
        del holder[key]
    folder = lay(tmp_path_factory.mktemp("odd"), files)
    try:
        assert read(name, folder).questions
    except InputError as error:
        output = str(error)
        assert ("\n" not in output, str(folder) in output) == (True, True)


def homer(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", "data", *arguments])


def counted(name: str, folder: Path) -> Census:
    return census(read(name, folder), source(name).published)


def whole_m3() -> Files:
    """As many videos and questions as the robot's part of M3-Bench has."""
    each, more = divmod(1276, 100)
    sizes = [each + (n < more) for n in range(100)]
    qa = ({**ROBOT_QA, "question_id": f"Q{n}"} for n in range(1276))
    return {
        "robot.json": {f"v{n}": robot([next(qa) for _ in range(k)]) for n, k in enumerate(sizes)}
    }


def test_a_copy_of_the_published_size_is_whole(tmp_path: Path) -> None:
    found = counted("m3-robot", lay(tmp_path, whole_m3()))
    assert (found.unlike, found.whole) == ((), True)
    assert found.questions == source("m3-robot").published.questions == sum(found.by_video.values())


@pytest.mark.parametrize(
    "one", [one for one in sources() if one.published.types], ids=lambda one: one.name
)
def test_types_are_called_as_they_are_counted(tmp_path: Path, one: DatasetSource) -> None:
    asked = read(one.name, lay(tmp_path, EXAMPLES[one.name])).questions
    assert all(set(question.types) & set(one.published.types) for question in asked)


@pytest.mark.parametrize(
    ("name", "answered", "as_of"),
    [("egoschema", 1, 0), ("ovo-bench", 7, 7), ("egomemreason", 0, 1)],
)
def test_known_answers_and_times_are_counted(
    tmp_path: Path, name: str, answered: int, as_of: int
) -> None:
    found = counted(name, lay(tmp_path, EXAMPLES[name]))
    assert (found.answered, found.as_of) == (answered, as_of)


def test_a_copy_that_lacks_something_says_what(tmp_path: Path) -> None:
    found = counted("ovo-bench", lay(tmp_path, EXAMPLES["ovo-bench"]))
    assert found.whole is False
    assert found.unlike[:3] == (
        "videos: 4, published 644",
        "questions: 7, published 3035",
        "type EPM: 1, published 297",
    )
    assert "type HLD: 0, published 186" in found.unlike
    assert found.types == {"forward": 6, "REC": 2, "SSR": 2, "CRR": 2, "backward": 1, "EPM": 1}


def test_videos_known_by_captions_are_here(tmp_path: Path) -> None:
    folder = lay(tmp_path, EXAMPLES["egolifeqa"])
    assert counted("egolifeqa", folder).missing == ("A1_JAKE",)
    lay(folder, {"captions.jsonl.gz": None})
    assert counted("egolifeqa", folder).missing == ()


def test_the_command_counts_a_copy(tmp_path: Path) -> None:
    lay(tmp_path, {"robot.json": {"hall\n01": robot([ROBOT_QA, ROBOT_QA])}})
    done = homer("m3-robot", str(tmp_path))
    assert done.exit_code == 1
    assert "videos: 1, not here: 1 (hall 01)" in done.output
    assert "questions: 2, 2 to 2 a video" in done.output
    assert "asked as of a moment: 2 (100.0 %)" in done.output
    assert re.search(r"Human Understanding +2\n", done.output)
    assert "unlike what was published: questions: 2, published 1276" in done.output


def test_the_command_says_when_a_copy_is_whole(tmp_path: Path) -> None:
    folder = lay(tmp_path, whole_m3())
    done = homer("m3-robot", str(folder))
    assert (done.exit_code, "whole: the counts are the published ones" in done.output) == (0, True)
    reported = json.loads(homer("m3-robot", str(folder), "--json").output)
    assert (reported["whole"], reported["videos"], reported["questions"]) == (True, 100, 1276)
    assert len(reported["missing"]) == len(reported["by_video"]) == 100


def test_the_command_lists_what_there_is() -> None:
    done = homer()
    assert done.exit_code == 0
    for one in sources():
        assert one.where in done.output
        assert one.licence in done.output
    reported = json.loads(homer("--json").output)
    assert [one["name"] for one in reported] == [one.name for one in sources()]
    assert reported[1]["published"] == {"videos": 100, "questions": 1276, "types": {}}
    told = homer("lvbench").output
    assert source("lvbench").where in told
    assert "m3-robot" not in told


def test_the_documents_name_every_data_set_with_its_counts() -> None:
    lines = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text().splitlines()
    for one in sources():
        (row,) = [line for line in lines if line.startswith(f"| `{one.name}` ")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:3] == [one.title, one.licence]
        reported = (one.published.videos, one.published.questions)
        assert cells[3:5] == ["" if count is None else str(count) for count in reported]
    assert "(docs/datasets.md)" in README.read_text()
