"""A caption file whose lines name their videos is read as so many videos, line by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from domain.errors import InputError
from memory.captions import CaptionTrack, read_captions, read_tracks


def row(video: object, start: float = 1, text: str = "A dog runs.") -> dict[str, object]:
    return {"video": video, "start": start, "end": start + 1, "text": text}


def written(folder: Path, *rows: object, name: str = "all.jsonl") -> Path:
    path = folder / name
    text = "\n".join(map(json.dumps, rows)).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def output(track: CaptionTrack) -> list[str]:
    return [line.text for line in track.lines]


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_every_video_has_its_own_lines_in_order_of_time(tmp_path: Path, name: str) -> None:
    rows = [row("b", 5, "later"), row(17), row("b", 2, "earlier")]
    b, number = read_tracks(written(tmp_path, *rows, name=name))
    assert (b.title, output(b)) == ("b", ["earlier", "later"])
    assert (number.title, output(number)) == ("17", ["A dog runs."])


def test_a_video_keeps_its_id_whatever_else_the_file_holds(tmp_path: Path) -> None:
    alone, _ = read_tracks(written(tmp_path, row("a"), row("b")))
    _, again = read_tracks(written(tmp_path, row("c"), row("a"), name="other.jsonl"))
    (changed,) = read_tracks(written(tmp_path, row("a", text="A cat runs."), name="third.jsonl"))
    assert alone.id == again.id != changed.id
    assert len(alone.id) == 16


def test_one_of_several_videos_is_read_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, row("a"), row("b", text="A cat sleeps."))
    assert output(read_captions(path, "b")) == ["A cat sleeps."]
    with pytest.raises(InputError, match=r"names 2 videos \(a, b\), none of them 'c'"):
        read_captions(path, "c")


def test_one_name_in_all_lines_is_one_file_under_any_title(tmp_path: Path) -> None:
    assert len(read_captions(written(tmp_path, row("a"), row("a", 4)), "holiday").lines) == 2


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"start": 1, "end": 2, "text": "x"}, "line 2: it names no video"),
        (row("  "), "line 2: it names no video"),
        (row(["a"]), "line 2: video is not a text"),
        (row(True), "line 2: video is not a text"),
        (row("n" * 501), "line 2: video is a name of more than 500 characters"),
        (row("a", -1), "line 2: start is not a number"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_tracks(written(tmp_path, row("a"), bad))


def test_subtitles_name_no_video(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    with pytest.raises(InputError, match="names no video"):
        read_tracks(path)
