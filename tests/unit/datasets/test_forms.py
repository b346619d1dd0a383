"""What holds of every data set: a copy is read or told of in a line, and counted."""

from __future__ import annotations

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
from typer.testing import CliRunner, Result

from cli.main import app
from domain.errors import InputError
from evals.dataset import DatasetSource
from evals.datasets import read, source, sources
from evals.datasets.registry import Census, census
from tests.support.datasets import EXAMPLES, PARQUET, ROBOT_QA, STREAMING, Files, lay, mme, robot

JSON_FILES = sorted(
    name for name, files in EXAMPLES.items() if all(".json" in path for path in files)
)


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
    members = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in members:
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


DOCS = Path(__file__).parents[3] / "docs" / "datasets.md"
README = Path(__file__).parents[3] / "README.md"


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
    [
        ("egoschema", 1, 0),
        ("ovo-bench", 7, 7),
        ("egomemreason", 0, 1),
    ],
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
    lines = DOCS.read_text().splitlines()
    for one in sources():
        (row,) = [line for line in lines if line.startswith(f"| `{one.name}` ")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:3] == [one.title, one.licence]
        reported = (one.published.videos, one.published.questions)
        assert cells[3:5] == ["" if count is None else str(count) for count in reported]
    assert "(docs/datasets.md)" in README.read_text()
