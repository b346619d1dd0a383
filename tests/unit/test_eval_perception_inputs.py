"""What people marked is read as it stands, and joined scenes are where they are said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.perception.annotations import read_rttm, read_transcript, read_uem
from benchmarks.perception.faces import (
    FaceSeen,
    judge_joined,
    judge_marked,
    marked_faces,
    match_faces,
)
from benchmarks.perception.joining import FPS, Scene, join, person_at, starts
from benchmarks.perception.metrics import SpeakerSpan
from benchmarks.perception.report import evaluate_perception
from benchmarks.perception.shots import find_cuts
from benchmarks.perception.voices import marked_recordings
from domain.errors import InputError
from domain.settings import WatchSettings
from models.profile import load_profile
from perception.source import probe
from store.home import Home
from tests.support.library import Quiet
from tests.support.media import make_video

RTTM = "SPEAKER one 1 0.500 1.250 <NA> <NA> ann <NA> <NA>\n\n;; a remark\n"


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


@pytest.mark.full
def test_scenes_begin_where_they_say_and_show_who_they_say(tmp_path: Path) -> None:
    for name, at in (("a.mp4", 0.0), ("b.mp4", 3.0)):
        make_video(tmp_path / name, seconds=4.0 + at, scene_s=60.0)
    scenes = [
        Scene("a.mp4", 500, 1_530, ("ann",)),
        Scene("b.mp4", 0, 800),
        Scene("a.mp4", 0, 1_000, ("bob", "cem")),
    ]
    assert starts(scenes) == [0, 1_000, 1_800, 2_800]
    info = probe(join(scenes, tmp_path, tmp_path / "joined.mp4"))
    assert (info.width, info.height, info.frame_rate) == (1_280, 720, FPS)
    assert info.duration_ms == pytest.approx(2_800, abs=100)
    assert person_at(scenes, 999, 0.9) == "ann"
    assert person_at(scenes, 1_000, 0.5) is None
    assert [person_at(scenes, 2_000, at) for at in (0.0, 0.49, 0.51, 1.0)] == [
        *("bob", "bob", "cem", "cem")
    ]
    assert person_at(scenes, 2_800, 0.5) is None


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


def test_a_folder_without_any_clip_is_refused_with_a_name(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name the folder that has msdwild"):
        evaluate_perception(tmp_path, load_profile("local"), home, Quiet())
