"""Caption files of every kind are read exactly, or refused with the line that is wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.settings import WatchSettings
from domain.time import TimeSpan
from memory.captions import CaptionKind, CaptionLine, CaptionTrack, caption_clips, read_captions
from tests.support.memory import span

SETTINGS = WatchSettings()
DAY = 86_400


def jsonl(folder: Path, *rows: object, name: str = "week.jsonl") -> Path:
    path = folder / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def row(**more: object) -> dict[str, object]:
    return {"start": 1, "end": 2.5, "text": "Hello."} | more


def line(at: TimeSpan, text: str, kind: CaptionKind, speaker: str | None = None) -> CaptionLine:
    return CaptionLine(span=at, text=text, kind=kind, speaker=speaker)


def test_lines_are_read_with_their_day_kind_and_speaker(tmp_path: Path) -> None:
    track = read_captions(
        jsonl(
            tmp_path,
            row(day=2, start=10, end=11, clip=0, kind="speech", speaker="Jake"),
            row(),
            "",
            row(start=3, end=4, speaker="Ada"),
            row(start=5, end=6, kind="speech"),
            row(start=7, end=8, text="  "),
        )
    )
    assert track.lines == (
        line(span(1, 2.5), "Hello.", "caption"),
        line(span(3, 4), "Hello.", "speech", "Ada"),
        line(span(5, 6), "Hello.", "speech"),
        line(span(DAY + 10, DAY + 11), "Hello.", "speech", "Jake"),
    )
    assert track.title == "week"


def test_a_gzipped_file_reads_the_same_under_another_id(tmp_path: Path) -> None:
    plain, packed = jsonl(tmp_path, row()), jsonl(tmp_path, row(), name="week.jsonl.gz")
    one, other = read_captions(plain), read_captions(packed)
    assert (one.lines, one.title) == (other.lines, other.title)
    assert len(one.id) == 16
    assert one.id != other.id


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{not json", "line 2"),
        ("[1, 2]", "not a JSON object"),
        (row(start=None), "start is not a number"),
        (row(start="1"), "start is not a number"),
        (row(end=0.5), "ends .* before it starts"),
        (row(start=-1), "start is not a number"),
        (row(day=0), "day is not a whole number"),
        (row(text=3), "text is not a text"),
        ('{"start": 1, "end": 2}', "text is not a text"),
        (row(kind="song"), "must be speech or caption"),
        (row(speaker=["a"]), "speaker is not a text"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, bad: object, said: str) -> None:
    with pytest.raises(InputError, match=f"week.jsonl, line 2: .*{said}|week.jsonl, {said}"):
        read_captions(jsonl(tmp_path, row(), bad))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b""),
        ("a.jsonl", b"\n\n"),
        ("a.jsonl", b"\xff\xfe\x00bad"),
        ("a.jsonl.gz", b"\x1f\x8bnot gzip"),
        ("a.srt", b""),
        ("a.srt", b"no subtitles in here"),
        ("a.vtt", b"WEBVTT\n"),
        ("a.srt", b"1\n00:00:05,000 --> 00:00:01,000\nbackwards\n"),
    ],
)
def test_a_file_without_lines_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match="a\\."):
        read_captions(path)


@given(st.binary(max_size=300), st.sampled_from(["a.jsonl", "a.srt", "a.vtt"]))
def test_any_bytes_are_lines_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    with suppress(InputError):
        assert read_captions(path).lines


VTT = """WEBVTT

00:01.000 --> 00:02.000
<v Ada Ferrari>Good morning.

next
00:00:03.000 --> 00:00:04.000 align:start
Plain <b>words</b> &amp; more.

NOTE nobody says this
"""


def test_webvtt_is_read_with_its_voices(tmp_path: Path) -> None:
    path = tmp_path / "talk.vtt"
    path.write_text(VTT, encoding="utf-8")
    found = [(one.span, one.text, one.speaker) for one in read_captions(path).lines]
    assert found == [
        (span(1, 2), "Good morning.", "Ada Ferrari"),
        (span(3, 4), "Plain words & more.", None),
    ]


def track_of(*lines: CaptionLine) -> CaptionTrack:
    return CaptionTrack("0" * 16, "t", lines)


def test_empty_stretches_make_no_clip_and_spans_stay_exact() -> None:
    lines = (
        line(span(29, 31), "It begins.", "caption"),
        line(span(30, 32), "Hello.", "speech", "Ada"),
        line(span(DAY, DAY + 1), "A new day.", "caption"),
    )
    first, second, third = caption_clips(track_of(*lines), SETTINGS)
    assert [one.clip.index for one in (first, second, third)] == [0, 1, 2]
    assert [one.clip.span for one in (first, second, third)] == [
        span(0, 30),
        span(30, 60),
        span(DAY, DAY + 30),
    ]
    assert first.captions[0].span == span(29, 31)
    assert (second.utterances[0].speaker, second.captions) == ("Ada", ())


def test_captions_that_roll_up_say_each_phrase_once(shared_media: Callable[[str], Path]) -> None:
    track = read_captions(shared_media("../cases/yt.en.vtt"))
    assert [one.text for one in track.lines] == [
        "welcome to the garden",
        "today we plant tomatoes",
        "and water them",
        "never after noon",
    ]
