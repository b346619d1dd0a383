"""Voices and faces of a joined video: whose they are, and which were joined rightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.perception.joining import WIDTH, Scene, join, speakers_at
from benchmarks.perception.joins import JoinReport, VideoIdentities, judge_joins
from benchmarks.perception.report import PerceptionReport
from perception.source import probe
from store.queries.identities import SightingAt
from tests.support.media import make_video
from tests.support.signals import frame_at

ANN = Scene("a", 0, 4_000, ("ann", "bob"), "ann")
BOB = Scene("b", 0, 4_000, ("bob", "cem"), "bob")
SCENES = (ANN, BOB, Scene("c", 0, 2_000, ("ann",)))
LEFT, RIGHT = (0, 0, 100, 100), (1_100, 0, 1_200, 100)


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
    report = judge_joins("j", met(*joined), SCENES)
    assert report == JoinReport("j", ("ann", "bob"), right, wrong)


def test_a_voice_at_a_wrong_face_misses_the_bar() -> None:
    for wrong in (0, 1):
        (bar,) = PerceptionReport(joins=(JoinReport("j", ("ann",), (), wrong),)).bars
        assert bar.met == (not wrong)


@pytest.mark.full
def test_a_clip_beside_another_is_seen_and_not_heard(tmp_path: Path) -> None:
    for name, seconds in (("a.mp4", 2.0), ("b.mp4", 3.0)):
        make_video(tmp_path / name, seconds=seconds)
    scene = Scene("a.mp4", 0, 1_000, ("ann", "bob"), "ann", ("b.mp4", 1_000))
    both = join([scene], tmp_path, tmp_path / "both.mp4")
    alone = join([Scene("a.mp4", 0, 1_000, ("ann",))], tmp_path, tmp_path / "alone.mp4")
    halves, whole = frame_at(both, 0.5), frame_at(alone, 0.5)
    assert halves.shape == whole.shape
    left, right = halves[:, : WIDTH // 2], halves[:, WIDTH // 2 :]
    for half in (left, right):
        assert half.max() > 60
        assert half[0].max() < 30
        assert half[-1].max() < 30
    assert whole[0].max() > 60
    assert probe(both).duration_ms == pytest.approx(1_000, abs=100)
