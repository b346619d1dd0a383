"""Files that may be added: under the folders that were named, and nowhere else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.folders import OutsideFolder, allowed_file, reject_url
from domain.errors import InputError, NotFound


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, ...]:
    for name in ("one/talks", "two", "one-more"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("one/talks/talk.mp4", "two/film.mp4", "one-more/private.mp4", "secret.mp4"):
        (tmp_path / name).write_bytes(b"film")
    (tmp_path / "one" / "away.mp4").symlink_to(tmp_path / "secret.mp4")
    (tmp_path / "one" / "near.mp4").symlink_to(tmp_path / "one" / "talks" / "talk.mp4")
    (tmp_path / "one" / "circle").symlink_to(tmp_path / "one" / "circle")
    return tmp_path / "one", tmp_path / "two"


def test_files_are_named_whole_or_from_a_folder(folders: tuple[Path, ...]) -> None:
    talk = folders[0] / "talks" / "talk.mp4"
    for path in (str(talk), "talks/talk.mp4", "near.mp4", "talks/../talks//talk.mp4"):
        assert allowed_file(folders, path) == talk
    assert allowed_file(folders, "film.mp4") == folders[1] / "film.mp4"


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.mp4", "../one-more/private.mp4", "away.mp4", "/etc/passwd", "/dev/zero", "/"),
        *("", ".", "talks/../../secret.mp4", "../nothing.mp4", "\0", "a\0b", "\ud800"),
    ],
)
def test_what_lies_elsewhere_is_refused_alike(folders: tuple[Path, ...], path: str) -> None:
    with pytest.raises((OutsideFolder, NotFound)) as output:
        allowed_file(folders, path)
    assert "secret" not in str(output.value)
    with pytest.raises(OutsideFolder) as other:
        allowed_file((), path)
    assert "homer serve --videos" in other.value.help


def test_no_file_and_what_is_none_are_not_found(folders: tuple[Path, ...]) -> None:
    for path in ("nothing.mp4", "talks", "circle", "x" * 5000):
        with pytest.raises(NotFound):
            allowed_file(folders, path)


PARTS = ["..", ".", "", "/", "~", "a", "\0", "\ud800", "é", Path(__file__).name, "conftest.py"]


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("/".join))
def test_no_path_leads_out_and_none_breaks_it(path: str) -> None:
    folder = Path(__file__).parent
    with suppress(OutsideFolder, NotFound):
        assert allowed_file([folder], path).is_relative_to(folder.resolve())


@pytest.mark.parametrize(
    "address",
    ["https://example.org/a.mp4", " http:/x", "file:///etc/passwd", "RTSP://cam", "a+b:/"],
)
def test_addresses_are_refused_with_the_reason(address: str) -> None:
    with pytest.raises(InputError, match="not fetched"):
        reject_url(address)
