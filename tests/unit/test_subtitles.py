"""Subtitles and chapters beside a video: which files are its own, and what they say when."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.media import Clip, Percept, Utterance, Video
from domain.memories import MemorySource
from domain.time import TimeSpan
from domain.wording import LINE_WORDS
from memory.subtitles import (
    SourceTexts,
    choose_subtitles,
    cues_to_utterances,
    find_sidecars,
    read_source_texts,
    reject_changed_subtitles,
)
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from people.characters import ClipPeople
from people.names import format_line
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
    "name",
    ["talk.srt", "talk.vtt", "talk.SRT", "talk.en.srt", "talk.pt-BR.vtt", "talk.en.sdh.srt"],
)
def test_files_of_subtitles_are_found_by_the_name_of_the_video(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SRT)
    assert [file.name for file in find_sidecars(tmp_path / "talk.mp4")] == [name]


def test_names_are_the_same_however_an_accent_is_written(tmp_path: Path) -> None:
    (tmp_path / "Zu\u0308rich.srt").write_text(SRT)
    assert len(find_sidecars(tmp_path / "Z\u00fcrich.mp4")) == 1


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
    assert (one.text, one.language, one.span) == (
        "Omar opens the gate.",
        "de",
        TimeSpan.of(500, 1500),
    )
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
    found = texts.add_to(Percept(clip=CLIPS[0])).subtitles
    assert [one.span.start_ms for one in found] == heard
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


def test_the_local_writer_cites_them_as_what_they_are() -> None:
    percept = Percept(
        clip=CLIPS[0],
        subtitles=(
            Utterance(span=TimeSpan.of(0, 900), text="Come in.", speaker="Omar"),
            Utterance(span=TimeSpan.of(1000, 2000), text="See <face_1>."),
        ),
        chapters=(Utterance(span=TimeSpan.of(0, 30_000), text="Arrival"),),
    )
    drafts = LocalClipWriter().write(percept, ClipPeople(), ClipContext("")).drafts
    assert {draft.source for draft in drafts} == {MemorySource.SUBTITLE, MemorySource.CHAPTER}
    assert [format_line(draft, ClipPeople()) for draft in drafts] == [
        "Subtitle, Omar: Come in.",
        "Chapter: Arrival",
        "Subtitle: See ‹face_1›.",
    ]


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
def test_where_there_are_none_it_makes_no_difference(
    before: tuple[str, ...] | None, now: SourceTexts | None
) -> None:
    reject_changed_subtitles(video(before), now)
