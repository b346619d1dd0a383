"""The file of a back-up: whatever happens to it, it is told, or it still holds what it held."""

from __future__ import annotations

import hashlib
import io
import tarfile
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from store.archive import (
    IMAGES_MEMBER,
    Manifest,
    TablePart,
    create_archive,
    open_archive,
    read_images,
    write_images,
)
from store.progress import Megabytes
from tests.support.library import Quiet

PICTURES = [b"", b"one", b"two" * 5000]
ROWS = [b"a\tline\n" * 300, b"", b"b\t\\N\n"]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def written(out: Path) -> Path:
    with create_archive(out) as archive:
        tables = []
        for number, rows in enumerate(ROWS):
            with archive.part(f"tables/t{number}") as part:
                part.write(rows)
            tables.append(
                TablePart(
                    schema_name="",
                    table=f"t{number}",
                    columns=("a", "b"),
                    counters={"id": 7},
                    rows=part.lines,
                    part=part.manifest_entry(),
                )
            )
        with archive.part(IMAGES_MEMBER, packed=False) as part:
            write_images(part, ((sha(data), data) for data in PICTURES))
        archive.close(
            Manifest(
                revision="0007",
                library="a" * 32,
                made_at="2026-01-01",
                tables=tuple(tables),
                blobs=len(PICTURES),
                images=part.manifest_entry(),
            )
        )
    return out


def held(path: Path) -> tuple[object, ...]:
    """All that a reader of the file gets, after the check that comes first."""
    with open_archive(path) as archive:
        archive.verify(lambda _bytes: None)
        rows = [b"".join(archive.blocks(one.part)) for one in archive.manifest.tables]
        return archive.manifest, rows, list(archive.images())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("archive") / "whole")


def test_what_is_written_is_read(whole: Path) -> None:
    manifest, rows, images = held(whole)
    assert isinstance(manifest, Manifest)
    assert (rows, images) == (ROWS, [(sha(data), data) for data in PICTURES])
    assert [one.rows for one in manifest.tables] == [300, 0, 1]
    assert (manifest.rows("t0"), manifest.rows("no such table")) == (300, 0)


@given(data=st.data())
def test_other_bytes_are_reported_or_change_nothing(whole: Path, data: st.DataObject) -> None:
    known = whole.read_bytes()
    at = data.draw(st.integers(0, len(known)))
    gone = data.draw(st.integers(0, 200))
    unless_told(whole, known[:at] + data.draw(st.binary(max_size=200)) + known[at + gone :])


def unless_told(whole: Path, data: bytes) -> None:
    path = whole.with_name("altered")
    path.write_bytes(data)
    with suppress(InputError):
        assert held(path) == held(whole)


@given(st.floats(0, 1, exclude_max=True))
def test_a_torn_file_is_always_told(whole: Path, share: float) -> None:
    data = whole.read_bytes()
    path = whole.with_name("torn")
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match="torn or altered"):
        held(path)


@given(st.binary(max_size=300))
def test_any_other_file_is_reported(whole: Path, data: bytes) -> None:
    path = whole.with_name("other")
    path.write_bytes(data)
    with pytest.raises(InputError, match="is no back-up"):
        held(path)


def repacked(whole: Path, changes: dict[str, bytes | None]) -> Path:
    """The file with members changed, added or (None) left out."""
    out = whole.with_name("repacked")
    with ZipFile(whole) as old, ZipFile(out, "w") as new:
        members = {name: old.read(name) for name in old.namelist()} | changes
        for name, data in members.items():
            if data is not None:
                new.writestr(name, data)
    return out


@pytest.mark.parametrize(
    "changes",
    [
        {"tables/t1": b"more\n"},
        {"tables/t0": None},
        {"tables/t9": b"not asked for"},
        {"tables/t0": b"x" * 5_000_000},
        {"manifest.json": None},
        {"manifest.json": b"{}"},
        {"manifest.json": b"\xff"},
    ],
    ids=lambda changes: f"{next(iter(changes))}: {str(next(iter(changes.values())))[:12]}",
)
def test_file_with_other_members_is_reported(whole: Path, changes: dict[str, bytes | None]) -> None:
    with pytest.raises(InputError, match="is no back-up"):
        held(repacked(whole, changes))


def test_a_bomb_is_left_at_the_size_it_claims(whole: Path) -> None:
    seen: list[int] = []
    bomb = repacked(whole, {"tables/t2": b"\0" * 50_000_000})
    with open_archive(bomb) as archive, pytest.raises(InputError):
        archive.verify(seen.append)
    assert sum(seen) < 10_000


def test_an_image_under_a_false_name_is_reported() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/passwd"))
    file.seek(0)
    with pytest.raises(ValueError, match="no image"):
        list(read_images(file))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="there already"):
        written(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.fixture
def bar() -> Quiet:
    return Quiet()


def test_bytes_are_reported_as_whole_megabytes(bar: Quiet) -> None:
    output = Megabytes(bar, "images", 10_300_000)
    for _ in range(103):
        output.step(100_000)
    assert (bar.told, bar.steps) == ([("images", 10)], 10)
