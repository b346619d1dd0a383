"""Names of uploads, and how long watching will take."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.uploads import delete_uploads, safe_name, store_upload, uploaded_files
from library.videos import seconds_left
from store.home import Home
from store.queries.library import WatchRate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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


def test_a_long_name_in_wide_letters_is_stored(place: Home) -> None:
    assert store_upload(place, f"{'講' * 120}.mp4", b"film").read_bytes() == b"film"


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
    name = hashlib.sha256(b"film").hexdigest()[:16]
    elsewhere = tmp_path / "films"
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
