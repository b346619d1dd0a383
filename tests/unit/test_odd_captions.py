"""Caption files as the world writes them: read exactly, or refused with the wrong line."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.people import TAG
from domain.settings import WatchSettings
from domain.time import TimeSpan
from memory.captions import (
    MAX_S,
    CaptionKind,
    CaptionLine,
    CaptionTrack,
    caption_clips,
    read_captions,
)
from tests.support.memory import span

GOOD = '{"start": 0, "end": 1, "text": "Good morning."}\n'
PACKED = gzip.compress(GOOD.encode() * 200, mtime=0)
WORDS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20
).filter(lambda text: bool(text.strip()))
MS = st.integers(0, 99 * 3_600_000)
CUES = st.lists(st.tuples(MS, st.integers(0, 10_000), st.from_regex(r"[a-z]{1,8}", fullmatch=True)))
DAY = 86_400
LINES = st.lists(
    st.tuples(MS, st.integers(0, 90_000), WORDS, st.sampled_from(["speech", "caption"])),
    min_size=1,
    max_size=20,
)


def written(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize("at", [*range(2, 12), 15, 20, len(PACKED) - 9, len(PACKED) - 1])
def test_a_damaged_archive_is_refused_by_name(tmp_path: Path, at: int) -> None:
    path = tmp_path / "week.jsonl.gz"
    for damaged in (PACKED[:at], PACKED[:at] + b"\xff\xff\xff" + PACKED[at + 3 :]):
        path.write_bytes(damaged)
        # The clock time and the system in a header say nothing about what follows.
        with suppress(InputError):
            assert len(read_captions(path).lines) == 200
    path.write_bytes(PACKED[:15] + b"\xff\xff\xff" + PACKED[18:])
    with pytest.raises(InputError, match=r"week\.jsonl\.gz is not text in UTF-8"):
        read_captions(path)


@pytest.mark.parametrize("field", ["start", "end", "day"])
@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e999", "NaN", "-Infinity"])
def test_a_number_beyond_reason_is_named(tmp_path: Path, field: str, number: str) -> None:
    row = {"start": "0", "end": "1", "text": '"x"'} | {field: number}
    output = "{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}"
    path = written(tmp_path, "week.jsonl", f"{GOOD}{output}\n")
    with pytest.raises(InputError, match=rf"week\.jsonl, line 2: {field} is not a number"):
        read_captions(path)


def test_a_forbidden_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "week.jsonl", GOOD)

    def refused(_path: Path, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(InputError, match=r"week\.jsonl cannot be read: Permission denied"):
        read_captions(path)


@pytest.mark.parametrize("name", ["week", "week.txt", "WEEK.JSONL", "a.b.jsonl.gz", ".jsonl"])
def test_lines_of_json_are_read_whatever_the_file_is_called(tmp_path: Path, name: str) -> None:
    track = read_captions(written(tmp_path, name, GOOD))
    assert [line.text for line in track.lines] == ["Good morning."]
    assert track.title


def test_a_speaker_called_like_a_tag_is_nobody_that_was_recognised(tmp_path: Path) -> None:
    row = {"start": 0, "end": 1, "text": "I am <face_1>.", "speaker": "<voice_7>"}
    (line,) = read_captions(written(tmp_path, "week.jsonl", json.dumps(row))).lines
    assert (line.speaker, line.kind) == ("‹voice_7›", "speech")


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(["start", "end", "text", "day", "speaker", "kind", "other"]),
        st.integers(-1, 5)
        | st.sampled_from(["speech", "caption", "Ada", "<voice_1>"])
        | json_values,
    ),
    max_size=4,
)


@given(ROWS)
def test_rows_of_anything_are_lines_that_hold_together_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = written(tmp_path_factory.mktemp("rows"), "a.jsonl", "\n".join(map(json.dumps, rows)))
    with suppress(InputError):
        for line in read_captions(path).lines:
            assert 0 <= line.span.start_ms <= line.span.end_ms <= 2 * MAX_S * 86_400_000
            assert line.text == " ".join(line.text.split())
            assert line.text.encode("utf-8")
            assert line.speaker is None or not TAG.search(line.speaker)
            assert line.kind in ("speech", "caption")


def srt_time(ms: int) -> str:
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d},{ms:03d}"


@pytest.mark.parametrize("kind", ["srt", "vtt"])
@given(cues=CUES.filter(bool))
def test_what_is_written_as_subtitles_reads_back_with_its_times(
    tmp_path_factory: pytest.TempPathFactory, kind: str, cues: list[tuple[int, int, str]]
) -> None:
    output = [
        f"{n}\n{srt_time(start)} --> {srt_time(start + length)}\n{text}\n"
        for n, (start, length, text) in enumerate(cues, 1)
    ]
    whole = "\n".join(output)
    if kind == "vtt":
        whole = "WEBVTT\n\n" + whole.replace(",", ".")
    track = read_captions(written(tmp_path_factory.mktemp("cues"), f"a.{kind}", whole))
    found = sorted((one.span.start_ms, one.span.length_ms, one.text) for one in track.lines)
    assert found == sorted(cues)
    starts = [one.span.start_ms for one in track.lines]
    assert starts == sorted(starts)


@pytest.mark.parametrize("kind", ["srt", "vtt"])
@pytest.mark.parametrize(
    ("start", "end"), [("100:00:00", "100:00:05"), ("99:59:59", "100:00:00"), ("123:00:00", "9:00")]
)
def test_times_that_subtitles_cannot_say_are_refused_and_not_cut(
    tmp_path: Path, kind: str, start: str, end: str
) -> None:
    cue = f"1\n{start},000 --> {end},000\nGood night.\n"
    whole = cue if kind == "srt" else "WEBVTT\n\n" + cue.replace(",", ".")
    with pytest.raises(InputError, match=r"beyond the 99 hours of subtitles: use JSON lines"):
        read_captions(written(tmp_path, f"a.{kind}", whole))


@pytest.mark.parametrize(
    ("raw", "speaker", "text"),
    [
        ("OMAR: Come in.", "Omar", "Come in."),
        ("Ada Lovelace: Come in.", "Ada Lovelace", "Come in."),
        ("- MRS. O'NEIL: Come in.", "Mrs. O'Neil", "Come in."),
        ("Note that: this stays.", None, "Note that: this stays."),
        ("OMAR:", None, "OMAR:"),
        ("10:30 is the time", None, "10:30 is the time"),
        ("{\\an8}<b>Up here</b>", None, "Up here"),
        ("<font color=red>Ada:</font> Yes", "Ada", "Yes"),
        ("fish &amp; chips", None, "fish & chips"),
        ("- So?", None, "So?"),
        ("Анна: Привет", "Анна", "Привет"),
        ("王明：你好", "王明", "你好"),
        ("مريم: مرحبا", "مريم", "مرحبا"),
        (">> JEAN-LUC D’ARC [on the phone]: Yes", "Jean-Luc D’Arc", "Yes"),
        ("[Ann]: Yes", "Ann", "Yes"),
        ("C-3PO: We're doomed", "C-3PO", "We're doomed"),
        ("SPEAKER_01: Yes", "SPEAKER_01", "Yes"),
        ("Warning: it is hot", None, "Warning: it is hot"),
        ("Step 2: stir", None, "Step 2: stir"),
        ("https://a.example", None, "https://a.example"),
        ("{\\p1}m 0 0 l 10 10{\\p0}Up here", None, "Up here"),
    ],
)
def test_speakers_are_in_words(tmp_path: Path, raw: str, speaker: str | None, text: str) -> None:
    cue = f"1\n00:00:01,000 --> 00:00:02,000\n{raw}\n"
    (line,) = read_captions(written(tmp_path, "a.srt", cue)).lines
    assert (line.speaker, line.text) == (speaker, text)


@pytest.mark.parametrize(
    "raw", ["<v Ann>Who says no?</v> <v Ben>I do.</v>", "ANN: Who says no?\nBEN: I do."]
)
def test_each_speaker_of_a_cue_says_a_line_of_his_own(tmp_path: Path, raw: str) -> None:
    cue = f"WEBVTT\n\n00:01.000 --> 00:03.000\n{raw}\n"
    ann, ben = read_captions(written(tmp_path, "a.vtt", cue)).lines
    assert (ann.speaker, ann.text) == ("Ann", "Who says no?")
    assert (ben.speaker, ben.text) == ("Ben", "I do.")
    assert (ann.span.start_ms, ben.span.end_ms) == (1000, 3000)
    assert ann.span.end_ms == ben.span.start_ms


SPOKEN = (
    *("Ann: Hello.", "and so we went on", "Ann: Yes.", "राम: नमस्ते", "to the market", "राम: हाँ"),
    *(
        "王小明（旁白）：你好",
        "王小明：是",
        "(SIGHS) OMAR: Oh",
        "(Narrator: softly) Hello",
        "they had bread",
    ),
    *(
        "Chicago: the windy city",
        "Das Problem: es regnet",
        "结果: 好",
        "and some cheese",
        "Monday: rest",
    ),
    *("so it goes", "and goes", "and goes on", "until it ends", "one day", "in the end", "as ever"),
)


def test_a_name_before_a_colon_speaks_if_the_file_names_it_again(tmp_path: Path) -> None:
    cues = [f"00:{n:02}.000 --> 00:{n:02}.500\n{text}\n" for n, text in enumerate(SPOKEN)]
    lines = read_captions(written(tmp_path, "a.vtt", "WEBVTT\n\n" + "\n".join(cues))).lines
    assert [one.speaker for one in lines if one.speaker] == [
        *("Ann", "Ann", "राम", "राम", "王小明", "王小明", "Omar")
    ]
    assert "Chicago: the windy city" in [one.text for one in lines]


@pytest.mark.parametrize("text", ["Om mani padme hum", "We will rock you"])
def test_a_chant_in_captions_stays(tmp_path: Path, text: str) -> None:
    cues = [f"00:{n:02}.000 --> 00:{n + 1:02}.000\n{text}\n" for n in range(6)]
    lines = read_captions(written(tmp_path, "a.vtt", "WEBVTT\n\n" + "\n".join(cues))).lines
    assert [one.text for one in lines] == [text] * 6


@given(LINES, st.integers(1, 120_000))
def test_clips_hold_every_line_once(made: list[tuple[int, int, str, Any]], clip_ms: int) -> None:
    lines = [
        CaptionLine(span=TimeSpan.of(start, start + length), text=text, kind=kind)
        for start, length, text, kind in sorted(made)
    ]
    track = CaptionTrack("0" * 16, "t", tuple(lines))
    clips = list(caption_clips(track, WatchSettings(clip_ms=clip_ms)))
    assert [one.clip.index for one in clips] == list(range(len(clips)))
    for one, following in itertools.pairwise(clips):
        assert one.clip.span.end_ms <= following.clip.span.start_ms
    held = [(u.span, u.text) for one in clips for u in (*one.utterances, *one.captions)]
    assert sorted(held, key=str) == sorted([(x.span, x.text) for x in lines], key=str)
    for one in clips:
        assert one.clip.span.length_ms == clip_ms
        for held_line in (*one.utterances, *one.captions):
            assert one.clip.span.start_ms <= held_line.span.start_ms < one.clip.span.end_ms
        assert one.clip.span.start_ms % clip_ms == 0
        assert {u.text for u in one.utterances} <= {x.text for x in lines if x.kind == "speech"}
    assert track.video().duration_ms == max(x.span.end_ms for x in lines)


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
    assert [(one.span, one.text, one.speaker) for one in read_captions(path).lines] == [
        (span(1, 2), "Good morning.", "Ada Ferrari"),
        (span(3, 4), "Plain words & more.", None),
    ]


def test_empty_stretches_make_no_clip_and_spans_stay_exact() -> None:
    lines = (
        line(span(29, 31), "It begins.", "caption"),
        line(span(30, 32), "Hello.", "speech", "Ada"),
        line(span(DAY, DAY + 1), "A new day.", "caption"),
    )
    first, second, third = caption_clips(CaptionTrack("0" * 16, "t", lines), WatchSettings())
    assert [one.clip.index for one in (first, second, third)] == [0, 1, 2]
    found = [one.clip.span for one in (first, second, third)]
    assert found == [span(0, 30), span(30, 60), span(DAY, DAY + 30)]
    assert first.captions[0].span == span(29, 31)
    assert (second.utterances[0].speaker, second.captions) == ("Ada", ())


def test_captions_that_roll_up_say_each_phrase_once(shared_media: Callable[[str], Path]) -> None:
    found = [one.text for one in read_captions(shared_media("../cases/yt.en.vtt")).lines]
    assert found == (
        ["welcome to the garden", "today we plant tomatoes", "and water them", "never after noon"]
    )
