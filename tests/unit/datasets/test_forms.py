"""What holds of every data set: a small copy is read, a broken one is told in a line."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from domain.errors import InputError
from evals.datasets import read, source, sources
from tests.support.datasets import EXAMPLES, PARQUET, STREAMING, lay, mme

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
