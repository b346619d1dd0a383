"""A path in the library is no leave to read a file: only the video itself is ever opened."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from domain.media import Video
from perception import source
from perception.source import (
    cache_original,
    drop_cached_original,
    original_file,
    stat_digest,
    video_id,
)
from store.home import Home
from ui.player import _why_missing

FILM = b"a film" * 1000
ID = hashlib.sha256(FILM).hexdigest()[:16]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "film.mp4"
    path.write_bytes(FILM)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []
    read = video_id

    def counted(path: Path) -> str:
        found.append(path)
        return read(path)

    monkeypatch.setattr(source, "video_id", counted)
    return found


def video(path: Path | str | None, name: str = ID) -> Video:
    text = None if path is None else str(path)
    return Video(id=name, title="film", path=text, duration_ms=1, has_video=True)


def test_only_the_file_that_was_watched_is_opened(
    home: Home, recording: Path, tmp_path: Path
) -> None:
    secret, pipe = tmp_path / "secret", tmp_path / "pipe"
    secret.write_text("a key")
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(secret)
    assert original_file(home, ID, str(recording)) == recording
    others = (secret, link, pipe, tmp_path, tmp_path / "gone", "/dev/zero", "x\0y", "")
    assert not any(original_file(home, ID, str(other)) for other in others)
    assert original_file(home, ID, None) is None
    assert original_file(home, "../" + ID, str(recording)) is None
    assert original_file(home, "f" * 16, str(recording)) is None


def test_a_file_is_read_once_and_again_where_it_may_have_changed(
    home: Home, recording: Path, reads: list[Path]
) -> None:
    for _ in range(3):
        assert original_file(home, ID, str(recording)) == recording
    assert reads == [recording]
    times = recording.stat()
    recording.write_bytes(FILM[::-1])
    os.utime(recording, ns=(times.st_atime_ns, times.st_mtime_ns))
    for _ in range(3):
        assert original_file(home, ID, str(recording)) is None
    assert len(reads) == 2
    recording.write_bytes(FILM)
    assert original_file(home, ID, str(recording)) == recording
    drop_cached_original(home, ID)
    assert original_file(home, ID, str(recording)) == recording
    assert len(reads) == 4


def test_another_file_under_the_same_name_is_read_anew(
    home: Home, recording: Path, tmp_path: Path, reads: list[Path]
) -> None:
    assert original_file(home, ID, str(recording)) == recording
    secret = tmp_path / "secret"
    secret.write_bytes(FILM[::-1])
    os.utime(secret, ns=(recording.stat().st_atime_ns, recording.stat().st_mtime_ns))
    secret.replace(recording)
    assert original_file(home, ID, str(recording)) is None


def test_what_watching_found_of_a_file_is_not_read_again(
    home: Home, recording: Path, reads: list[Path]
) -> None:
    cache_original(home, ID, stat_digest(recording))
    assert original_file(home, ID, str(recording)) == recording
    assert reads == []
    kept = next((home.run / "originals").iterdir())
    assert str(recording.parent) not in kept.read_text()
    kept.write_text("nonsense \x00")
    assert original_file(home, ID, str(recording)) == recording
    assert reads == [recording]


def test_the_player_says_why_there_is_no_video(home: Home, recording: Path) -> None:
    assert "came with an import" in _why_missing(video(None), is_stream=False)
    recording.write_bytes(b"another")
    assert "has changed since it was watched" in _why_missing(video(recording), is_stream=False)
    recording.unlink()
    assert "is missing" in _why_missing(video(recording), is_stream=False)
