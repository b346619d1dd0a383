"""Subtitles and chapters beside a video, and caption files of many videos."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.media import Clip, Percept, Utterance, Video
from domain.sentences import LINE_WORDS
from domain.time import TimeSpan
from memory.captions import CaptionTrack, read_captions, read_tracks
from memory.subtitles import (
    SourceTexts,
    choose_subtitles,
    cues_to_utterances,
    find_sidecars,
    read_source_texts,
    reject_changed_subtitles,
)
from perception.source import probe_source
from tests.support.media import make_video

SRT = "1\n00:00:00,500 --> 00:00:01,500\nOmar opens the gate.\n"
CLIPS = [Clip(index=n, span=TimeSpan.of(n * 30_000, (n + 1) * 30_000)) for n in range(3)]


def spoken(start_ms: int, end_ms: int, text: str) -> tuple[TimeSpan, str]:
    return TimeSpan.of(start_ms, end_ms), text


def lines(clip: Clip, *cues: tuple[TimeSpan, str]) -> list[tuple[int, int, str]]:
    percept = SourceTexts(("x",), (cues_to_utterances(cues),)).add_to(Percept(clip=clip))
    return [(one.span.start_ms, one.span.end_ms, one.text) for one in percept.subtitles]


@pytest.mark.parametrize(
    "name", ["talk.srt", "talk.vtt", "talk.SRT", "talk.en.srt", "talk.pt-BR.vtt", "talk.en.sdh.srt"]
)
def test_files_of_subtitles_are_found_by_the_name_of_the_video(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SRT)
    assert [file.name for file in find_sidecars(tmp_path / "talk.mp4")] == [name]


@pytest.mark.parametrize(
    "name", ["talks.srt", "talk-2.srt", "talk.txt", "talk.notes.srt", "another.srt", "talk.srt.bak"]
)
def test_other_files_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SRT)
    assert find_sidecars(tmp_path / "talk.mp4") == []


def test_subtitles_of_a_video_with_a_longer_name_are_left_to_it(tmp_path: Path) -> None:
    (tmp_path / "talk.en.mp4").touch()
    (tmp_path / "talk.en.srt").write_text(SRT)
    assert find_sidecars(tmp_path / "talk.mp4") == []
    assert [file.name for file in find_sidecars(tmp_path / "talk.en.mp4")] == ["talk.en.srt"]


@pytest.mark.parametrize(
    "data",
    [
        SRT.encode(),
        codecs.BOM_UTF8 + SRT.encode(),
        SRT.encode("utf-16"),
        codecs.BOM_UTF16_BE + SRT.encode("utf-16-be"),
    ],
)
def test_subtitles_are_read_in_every_unicode(data: bytes, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4", seconds=2.0)
    (tmp_path / "talk.de.srt").write_bytes(data)
    found = read_source_texts(path, probe_source(path))
    (one,) = found.add_to(Percept(clip=CLIPS[0])).subtitles
    assert (one.text, one.language) == ("Omar opens the gate.", "de")
    assert one.span == TimeSpan.of(500, 1500)
    assert found.names[0].startswith(".de.srt ")


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"no cue at all", "ä".encode("latin-1")])
def test_damaged_subtitles_are_reported_with_the_way_out(data: bytes, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4", seconds=2.0)
    (tmp_path / "talk.srt").write_bytes(data)
    with pytest.raises(InputError, match=r"talk\.srt.*--subtitles ignore") as output:
        read_source_texts(path, probe_source(path))
    assert "\n" not in str(output.value)


def test_captions_that_roll_up_are_reported_once() -> None:
    cues = (
        spoken(0, 2000, "search today goes"),
        spoken(2000, 2010, "search today goes\n "),
        spoken(2010, 4000, "search today goes\nbeyond a text box"),
        spoken(4000, 6000, "beyond a text box\nwe live in images"),
    )
    assert lines(CLIPS[0], *cues) == [
        (0, 6000, "search today goes beyond a text box we live in images")
    ]


@pytest.mark.parametrize(
    ("starts", "heard", "remark"),
    [
        ((36_000, 36_001), [0, 1_000], "the times of talk.srt begin at 10:00:00"),
        ((35_990, 36_000, 36_001), [0, 1_000], "the times of talk.srt begin at 10:00:00"),
        ((36_900, 37_000), [], "no line of talk.srt lies within the video"),
        ((0, 1), [0, 1_000], None),
    ],
)
def test_times_of_broadcasters_are_shifted_or_said_not_to_fit(
    starts: tuple[int, ...], heard: list[int], remark: str | None, tmp_path: Path
) -> None:
    path = make_video(tmp_path / "talk.mp4", seconds=2.0)
    clocks = [f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" for s in starts]
    cues = [f"{n}\n{at},000 --> {at},900\nLine {n}.\n" for n, at in enumerate(clocks, 1)]
    (tmp_path / "talk.srt").write_text("\n".join(cues))
    texts = read_source_texts(path, probe_source(path))
    assert [one.span.start_ms for one in texts.add_to(Percept(clip=CLIPS[0])).subtitles] == heard
    assert [one.startswith(remark or "-") for one in texts.remarks] == [True] * (remark is not None)


def test_what_is_said_again_later_is_reported_again() -> None:
    cues = (spoken(0, 1000, "No!"), spoken(5000, 6000, "No!"))
    assert lines(CLIPS[0], *cues) == [(0, 1000, "No!"), (5000, 6000, "No!")]


def test_a_sentence_over_two_cues_is_one_line_but_never_over_two_clips() -> None:
    cues = (
        spoken(26_000, 28_000, "The bridge was built"),
        spoken(28_000, 29_900, "by hand"),
        spoken(29_900, 31_000, "and it stood"),
        spoken(31_000, 33_000, "a hundred years."),
    )
    assert lines(CLIPS[0], *cues) == [(26_000, 31_000, "The bridge was built by hand and it stood")]
    assert lines(CLIPS[1], *cues) == [(31_000, 33_000, "a hundred years.")]


def test_a_new_speaker_begins_a_new_line() -> None:
    cues = (spoken(0, 900, "OMAR: Come in,"), spoken(1000, 2000, "RUTH: I will"))
    assert [text for *_, text in lines(CLIPS[0], *cues)] == ["Come in,", "I will"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 89_000),
            st.integers(1, 5_000),
            st.sampled_from(["one", "two", "three.", "x"]),
        )
    )
)
def test_every_cue_is_reported_in_the_clip_it_begins_in(cues: list[tuple[int, int, str]]) -> None:
    made = sorted((spoken(s, s + length, t) for s, length, t in cues), key=lambda c: c[0].start_ms)
    for clip in CLIPS:
        found = lines(clip, *made)
        inside = [
            c
            for c in cues_to_utterances(made)
            if clip.span.start_ms <= c.span.start_ms < clip.span.end_ms
        ]
        assert all(clip.span.start_ms <= start < clip.span.end_ms for start, *_ in found)
        assert all(len(text.split()) <= LINE_WORDS for *_, text in found)
        output = {word for *_, text in found for word in text.split()}
        assert output == {word for one in inside for word in one.text.split()}


def test_a_chapter_is_reported_when_it_begins_and_not_beyond_what_was_watched() -> None:
    found = SourceTexts(
        chapters=(Utterance(span=TimeSpan.of(31_000, 80_000), text="The second act"),)
    )
    assert found.add_to(Percept(clip=CLIPS[0])).chapters == ()
    (one,) = found.add_to(Percept(clip=CLIPS[1])).chapters
    assert one.span == TimeSpan.of(31_000, 60_000)
    assert found.add_to(Percept(clip=CLIPS[2])).chapters == ()


def video(subtitles: tuple[str, ...] | None) -> Video:
    return Video(id="a" * 16, title="talk", path=None, duration_ms=1, subtitles=subtitles)


@pytest.mark.parametrize(
    ("known", "asked", "settings", "wanted"),
    [
        (None, None, "ignore", "ignore"),
        (None, None, "use", "use"),
        (None, "use", "ignore", "use"),
        (video(None), None, "use", "ignore"),
        (video((".srt 1",)), None, "ignore", "use"),
        (video((".srt 1",)), "ignore", "use", "ignore"),
    ],
)
def test_a_video_goes_on_as_it_was_begun(
    known: Video | None, asked: object, settings: object, wanted: str
) -> None:
    assert choose_subtitles(known, asked, settings) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "now", "output"),
    [
        (None, (".srt 1",), "no subtitles, and .srt 1"),
        ((".srt 1",), None, ".srt 1, and none"),
        ((".srt 1",), (".srt 2", "track 3"), ".srt 1, and .srt 2, track 3"),
    ],
)
def test_a_video_that_was_watched_otherwise_is_reported_with_the_way_out(
    before: tuple[str, ...] | None, now: tuple[str, ...] | None, output: str
) -> None:
    with pytest.raises(InputError, match=output) as error:
        reject_changed_subtitles(video(before), None if now is None else SourceTexts(now))
    assert f"homer delete {'a' * 16}" in str(error.value)


@pytest.mark.parametrize("before", [None, ()])
@pytest.mark.parametrize("now", [None, SourceTexts()])
def test_without_any_all_is_same(before: tuple[str, ...] | None, now: SourceTexts | None) -> None:
    reject_changed_subtitles(video(before), now)


def row(video: object, start: float = 1, text: str = "A dog runs.") -> dict[str, object]:
    return {"video": video, "start": start, "end": start + 1, "text": text}


def written(folder: Path, *rows: object, name: str = "all.jsonl") -> Path:
    path, text = folder / name, "\n".join(map(json.dumps, rows)).encode()
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
