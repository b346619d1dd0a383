"""What people marked, and the scores of what is seen and heard beside plain ones."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.perception.annotations import read_rttm, read_transcript, read_uem
from benchmarks.perception.faces import (
    FaceSeen,
    judge_joined,
    judge_marked,
    marked_faces,
    match_faces,
)
from benchmarks.perception.joining import Scene, speakers_at
from benchmarks.perception.joins import JoinReport, VideoIdentities, judge_joins
from benchmarks.perception.metrics import (
    Cuts,
    Pairs,
    SpeakerErrors,
    SpeakerSpan,
    compare_cuts,
    count_pairs,
    speaker_errors,
    word_errors,
)
from benchmarks.perception.shots import find_cuts
from benchmarks.perception.voices import marked_recordings
from domain.errors import InputError
from domain.settings import WatchSettings
from store.queries.identities import SightingAt
from tests.support.media import make_video

TEXT = st.lists(st.sampled_from(["ann", "opens", "the", "red", "door"]), max_size=6)
TIMES = st.lists(st.integers(0, 60), max_size=7, unique=True)
RTTM = "SPEAKER one 1 0.500 1.250 <NA> <NA> ann <NA> <NA>\n\n;; a remark\n"
BOB = Scene("b", 0, 4_000, ("bob", "cem"), "bob")
SCENES = (Scene("a", 0, 4_000, ("ann", "bob"), "ann"), BOB, Scene("c", 0, 2_000, ("ann",)))
LEFT, RIGHT = (0, 0, 100, 100), (1_100, 0, 1_200, 100)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=14))
def test_pairs_are_counted_as_by_looking_at_each(sightings: list[tuple[int, int]]) -> None:
    every = list(combinations(sightings, 2))
    plain = Pairs(
        right=sum(a == b for a, b in every),
        joined=sum(a[1] == b[1] for a, b in every),
        same=sum(a[0] == b[0] for a, b in every),
    )
    assert count_pairs(sightings) == plain
    assert 0 <= plain.f1 <= 1


TURNS = st.lists(
    st.builds(
        lambda start, length, who: SpeakerSpan(start, start + length, who),
        st.integers(0, 20),
        st.integers(0, 8),
        st.sampled_from("abc"),
    ),
    max_size=6,
)


def by_the_millisecond(
    true: list[SpeakerSpan], output: list[SpeakerSpan], end: int, collar: int
) -> SpeakerErrors:
    """The same by looking at each millisecond under every mapping of names."""
    merged = {
        w: {t for s in true if s.who == w for t in range(s.start_ms, s.end_ms)} for w in "abc"
    }
    edges = [t for said in merged.values() for t in said if t - 1 not in said]
    edges += [t + 1 for said in merged.values() for t in said if t + 1 not in said]
    scored = [t for t in range(end) if not any(e - collar <= t < e + collar for e in edges)]
    heard = {
        w: {t for s in output if s.who == w for t in range(s.start_ms, s.end_ms)} for w in "abc"
    }
    options = []
    for names in permutations("abc"):
        mapping, total = dict(zip("abc", names, strict=True)), SpeakerErrors()
        for t in scored:
            real = {w for w in "abc" if t in merged[w]}
            said = {mapping[w] for w in "abc" if t in heard[w]}
            common = min(len(real), len(said))
            total += SpeakerErrors(
                len(real), len(real) - common, len(said) - common, common - len(real & said)
            )
        options.append(total)
    return min(options, key=lambda one: one.confused_ms)


@given(TURNS, TURNS, st.integers(0, 2))
def test_speaker_errors_are_those_of_each_millisecond(
    true: list[SpeakerSpan], output: list[SpeakerSpan], collar: int
) -> None:
    assert speaker_errors(true, output, [(0, 25)], collar) == by_the_millisecond(
        true, output, 25, collar
    )


def test_what_is_not_marked_and_the_collar_are_left_out() -> None:
    true, output = (
        [SpeakerSpan(1_000, 2_000, "a")],
        [SpeakerSpan(800, 2_200, "x"), SpeakerSpan(5_000, 9_000, "y")],
    )
    assert speaker_errors(true, output, [(0, 4_000)], 250).rate == 0
    assert speaker_errors(true, output, [(0, 4_000)], 0).false_ms == 400
    assert speaker_errors([], [], [(0, 10)]).rate == 0
    assert speaker_errors([], output, [(0, 4_000)]).rate == 100


@given(TEXT, TEXT, TEXT)
def test_word_edits_are_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    def edits(one: list[str], other: list[str]) -> int:
        return word_errors(" ".join(one), " ".join(other)).edits

    assert (edits(a, b) == 0) == (a == b)
    assert edits(a, b) == edits(b, a) <= max(len(a), len(b))
    assert edits(a, c) <= edits(a, b) + edits(b, c)
    assert edits(a, b) >= abs(len(a) - len(b))


@pytest.mark.parametrize(
    ("said", "written", "rate"),
    [
        ("Hello? Oh, hello.", "hello oh hello", 0),
        ("It’s 327 — I'm going in", "its 327 i'm going in", 20),
        ("one two three four", "one two four", 25),
        ("one two", "one and two", 50),
        ("Müller", "MÜLLER!", 0),
        ("", "", 0),
        ("", "noise", 100),
    ],
)
def test_words_are_compared_without_case_or_marks(said: str, written: str, rate: float) -> None:
    assert word_errors(said, written).rate == rate


def most_pairs(true: list[int], output: list[int], tolerance: int) -> int:
    """The largest pairing, by trying all."""
    if not true:
        return 0
    first, rest = true[0], true[1:]
    best = most_pairs(rest, output, tolerance)
    for one in output:
        if abs(one - first) <= tolerance:
            left = [other for other in output if other != one]
            best = max(best, 1 + most_pairs(rest, left, tolerance))
    return best


@given(TIMES, TIMES, st.integers(0, 9))
def test_cuts_are_paired_at_most(true: list[int], output: list[int], tolerance: int) -> None:
    found = compare_cuts(true, output, tolerance)
    assert found == Cuts(len(true), len(output), most_pairs(true, output, tolerance))
    assert 0 <= found.f1 <= 1


def test_a_cut_told_twice_is_wrong_once_and_none_of_none_is_all() -> None:
    assert compare_cuts([1_000], [900, 1_100], 250) == Cuts(1, 2, 1)
    assert compare_cuts([], [], 250).f1 == 1
    assert compare_cuts([], [5], 250).f1 == 0


def test_turns_and_marked_stretches_are_read_in_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "a.rttm").write_text(RTTM + "SPKR-INFO one 1 <NA> <NA> <NA> unknown ann <NA>\n")
    (tmp_path / "a.uem").write_text("one NA 0.000 30.000\none NA 40 41.5\n")
    assert read_rttm(tmp_path / "a.rttm") == {"one": [SpeakerSpan(500, 1_750, "ann")]}
    assert read_uem(tmp_path / "a.uem") == {"one": [(0, 30_000), (40_000, 41_500)]}


@pytest.mark.parametrize(
    "line",
    ["SPEAKER one 1 x 1", "SPEAKER one", "SPEAKER one 1 0 inf a b c", "SPEAKER one 1 0 1 <NA>"],
)
def test_a_line_that_is_no_turn_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.rttm").write_text(f"{RTTM}{line}\n")
    with pytest.raises(InputError, match=r"a\.rttm, line 4: no "):
        read_rttm(tmp_path / "a.rttm")


def test_transcripts_are_read_from_stm_and_captions(tmp_path: Path) -> None:
    (tmp_path / "a.stm").write_text("s 1 Ann 0.1 0.9 Oh, hello.\ns 1 Bob 1 2 Neither did I.\n")
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nGood\nmorning.\n")
    assert read_transcript(tmp_path / "a.stm") == "Oh, hello. Neither did I."
    assert read_transcript(tmp_path / "a.srt").split() == ["Good", "morning."]


def test_a_recording_is_found_by_its_name_or_beside_its_marks(tmp_path: Path) -> None:
    audio = tmp_path / "audio"
    audio.mkdir()
    (audio / "all.rttm").write_text(RTTM + RTTM.replace("one", "gone"))
    (audio / "all.uem").write_text("one NA 0 0.9\n")
    make_video(audio / "one.flac", codec=None, audio="flac", seconds=1.0)
    (tmp_path / "clip.rttm").write_text(RTTM.replace("one", "0001"))
    make_video(tmp_path / "clip.mp4", seconds=1.0)
    found = marked_recordings(tmp_path)
    assert [(one.path.name, one.speakers) for one in found] == [("clip.mp4", 1), ("one.flac", 1)]
    assert found[0].scored == ((0, 1_000),)
    assert found[1].scored == ((0, 900),)


def test_cuts_of_a_made_video_are_found_within_a_sample(tmp_path: Path) -> None:
    video = make_video(tmp_path / "v.mp4", seconds=4.0, scene_s=1.0, audio=None)
    seen: list[int] = []
    cuts = find_cuts(video, WatchSettings(), lambda: seen.append(1))
    assert cuts == pytest.approx([1_000, 2_000, 3_000], abs=200)
    assert seen == [1]


def test_boxes_are_matched_to_the_marked_face_they_overlap_most() -> None:
    truth = [("ann", (0, 0, 100, 100)), ("bob", (50, 0, 150, 100))]
    assert match_faces([(45, 0, 145, 100), (0, 0, 90, 100), (300, 0, 400, 90)], truth) == [
        *("bob", "ann", None)
    ]
    assert match_faces([(0, 0, 100, 100), (2, 0, 102, 100)], truth[:1]) == ["ann", None]


def test_a_marked_clip_counts_what_was_missed_and_who_is_nobody(tmp_path: Path) -> None:
    marks = tmp_path / "faces.csv"
    marks.write_text("0,face,1,0,0,100,100,0\n0,face,2,200,0,300,100,0\n25,face,1,0,0,100,100,0\n")
    seen = [
        FaceSeen(0, (0, 0, 100, 100), 5),
        FaceSeen(0, (500, 0, 600, 100), 5),
        FaceSeen(1_000, (0, 0, 100, 100), 6),
    ]
    report = judge_marked("m", "e", seen, marked_faces(marks), 25.0)
    assert (report.marked, report.missed, report.strangers, report.twice) == (3, 1, 1, 1)
    assert (report.pairs.right, report.pairs.joined, report.pairs.same) == (0, 1, 1)


def test_faces_of_a_joined_video_are_whose_scene_it_is() -> None:
    scenes = [Scene("a", 0, 1_000, ("ann",)), Scene("b", 0, 1_000, ("bob", "ann"))]
    left, right = (0, 0, 100, 100), (1_100, 0, 1_200, 100)
    seen = [FaceSeen(0, left, 1), FaceSeen(1_200, left, 2), FaceSeen(1_200, right, 1)]
    report = judge_joined("j", "e", seen, scenes)
    assert (report.pairs.f1, report.people, report.identities, report.twice) == (1, 2, 2, 0)


def test_who_is_heard_is_counted_scene_by_scene() -> None:
    assert speakers_at(SCENES, 3_000, 4_500) == {"ann": 1_000, "bob": 500}
    assert speakers_at(SCENES, 7_500, 9_000) == {"bob": 500, "": 1_000}
    assert speakers_at(SCENES, 10_000, 11_000) == {}


def met(*joined: tuple[int, int]) -> VideoIdentities:
    """Ann is face 0 and voice 0, Bob face 1 and voice 1; voice 2 is nobody's who is known."""
    faces = (
        SightingAt(0, 100, 200, LEFT),
        SightingAt(0, 8_100, 8_200, LEFT),
        SightingAt(1, 100, 200, RIGHT),
        SightingAt(1, 4_100, 4_200, LEFT),
    )
    voices = (
        SightingAt(0, 0, 4_200, None),
        SightingAt(1, 4_200, 8_000, None),
        SightingAt(2, 8_000, 10_000, None),
    )
    return VideoIdentities(faces, voices, joined)


@pytest.mark.parametrize(
    ("joined", "right", "wrong"),
    [
        ([], (), 0),
        ([(0, 0)], ("ann",), 0),
        ([(0, 0), (1, 1)], ("ann", "bob"), 0),
        ([(0, 1), (1, 0)], (), 2),
        ([(0, 0), (0, 2)], ("ann",), 1),
    ],
)
def test_a_join_is_right_where_face_and_voice_are_one_person_s(
    joined: list[tuple[int, int]], right: tuple[str, ...], wrong: int
) -> None:
    assert judge_joins("j", met(*joined), SCENES) == JoinReport("j", ("ann", "bob"), right, wrong)
