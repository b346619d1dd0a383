"""Names of uploads, and how long watching will take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.uploads import drop_upload, keep_upload, safe_name
from memory.shelf import seconds_left
from store.home import Home
from store.queries.shelf import Pace

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


def test_the_same_upload_is_kept_once_and_only_uploads_are_dropped(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").make()
    first = keep_upload(home, "a.mp4", b"film")
    assert keep_upload(home, "a.mp4", b"film") == first
    assert first.read_bytes() == b"film"
    own = tmp_path / "own.mp4"
    own.write_bytes(b"mine")
    assert not drop_upload(home, str(own))
    assert not drop_upload(home, None)
    assert drop_upload(home, str(first))
    assert not first.parent.exists()
    assert own.exists()


def test_the_time_left_follows_the_pace() -> None:
    pace = Pace(clips=5, first=NOW - timedelta(seconds=40), last=NOW)
    assert seconds_left(pace, 6, NOW) == pytest.approx(60)
    assert seconds_left(pace, 6, NOW + timedelta(seconds=4)) == pytest.approx(56)
    assert seconds_left(pace, 6, NOW + timedelta(hours=1)) == pytest.approx(50)
    assert seconds_left(pace, 0, NOW) is None
    assert seconds_left(None, 6, NOW) is None
