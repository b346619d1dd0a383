"""Files of back-ups and uploads: whatever happens to one it is told, and a name is only a name."""

from __future__ import annotations

import hashlib
import io
import tarfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from flows.uploads import delete_uploads, safe_name, store_upload, uploaded_files
from library.videos import seconds_left
from store.archive import (
    IMAGES_MEMBER,
    Manifest,
    TablePart,
    create_archive,
    open_archive,
    read_images,
    write_images,
)
from store.home import Home
from store.progress import Megabytes
from store.queries.library import WatchRate
from tests.support.library import Quiet

PICTURES = [b"", b"one", b"two" * 5000]
ROWS = [b"a\tline\n" * 300, b"", b"b\t\\N\n"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
                revision="0007_00000000",
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
    at, gone = data.draw(st.integers(0, len(known))), data.draw(st.integers(0, 200))
    path = whole.with_name("altered")
    path.write_bytes(known[:at] + data.draw(st.binary(max_size=200)) + known[at + gone :])
    with suppress(InputError):
        assert held(path) == held(whole)


@given(st.floats(0, 1, exclude_max=True))
def test_a_torn_file_is_always_told(whole: Path, share: float) -> None:
    data, path = whole.read_bytes(), whole.with_name("torn")
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
        for name, data in ({name: old.read(name) for name in old.namelist()} | changes).items():
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


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("a talk.mp4", "a talk.mp4"),
        ("../../etc/passwd", "passwd"),
        ("C:\\films\\talk.MKV", "talk.MKV"),
        (".hidden.mp4", "hidden.mp4"),
        ("\x00\n.mp4", "video.mp4"),
        ("", "video"),
        ("قصر.webm", "قصر.webm"),
        ("-rf.mp4", "-rf.mp4"),
    ],
)
def test_a_name_is_made_safe(name: str, kept: str) -> None:
    assert safe_name(name) == kept


@given(st.text(max_size=300))
def test_any_name_is_one_plain_file_name(name: str) -> None:
    kept = safe_name(name)
    assert kept
    assert Path(kept).name == kept
    assert not kept.startswith(".")
    assert len(kept) < 120
    # With what keep_upload puts behind it while it writes.
    assert len(f"{kept}.new".encode()) < 256


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").make()


def test_the_same_upload_is_stored_once(place: Home) -> None:
    first = store_upload(place, "a.mp4", b"film")
    assert store_upload(place, "a.mp4", b"film") == first
    assert first.read_bytes() == b"film"
    assert uploaded_files(place, first.parent.name) == [first]


def test_an_upload_goes_under_all_its_names_and_leaves_no_folder(place: Home) -> None:
    names = [store_upload(place, name, b"film") for name in ("a.mp4", "b.mp4")]
    other = store_upload(place, "a.mp4", b"another film")
    assert delete_uploads(place, names[0].parent.name) == names
    assert not names[0].parent.exists()
    assert other.exists()
    assert delete_uploads(place, names[0].parent.name) == []


def test_what_somebody_put_among_the_uploads_stays(place: Home, tmp_path: Path) -> None:
    """Only a file whose folder tells what is in it is one that Homer put there."""
    own = tmp_path / "own.mp4"
    own.write_bytes(b"mine")
    kept = store_upload(place, "a.mp4", b"film")
    beside = kept.with_name("notes.txt")
    beside.write_text("my notes")
    link = kept.with_name("link.mp4")
    link.symlink_to(own)
    assert delete_uploads(place, kept.parent.name) == [kept]
    assert beside.exists()
    assert link.is_symlink()
    assert own.read_bytes() == b"mine"


def test_a_folder_that_leads_elsewhere_is_nobodys_upload(place: Home, tmp_path: Path) -> None:
    name, elsewhere = hashlib.sha256(b"film").hexdigest()[:16], tmp_path / "films"
    elsewhere.mkdir()
    (elsewhere / "a.mp4").write_bytes(b"film")
    place.uploads.mkdir()
    (place.uploads / name).symlink_to(elsewhere)
    for output in (name, "..", "../../films", "", "*", name.upper()):
        assert delete_uploads(place, output) == []
    assert (elsewhere / "a.mp4").exists()


def test_the_time_left_follows_the_pace() -> None:
    pace = WatchRate(clips=5, first=NOW - timedelta(seconds=40), last=NOW)
    assert seconds_left(pace, 6, NOW) == pytest.approx(60)
    assert seconds_left(pace, 6, NOW + timedelta(seconds=4)) == pytest.approx(56)
    assert seconds_left(pace, 6, NOW + timedelta(hours=1)) == pytest.approx(50)
    assert seconds_left(pace, 0, NOW) is None
    assert seconds_left(None, 6, NOW) is None
