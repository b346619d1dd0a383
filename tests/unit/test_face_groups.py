"""Faces of a clip: found, placed, told from pictures, and grouped into people."""

from __future__ import annotations

from dataclasses import dataclass, field

import av
import cv2
import numpy as np
import pytest

from domain.media import Clip, Group
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.faces import make_face
from models.ports import Face, Image
from perception.faces_and_voices import (
    DetectedFace,
    box_iou,
    find_faces,
    group_faces,
    is_still_image,
)
from perception.frames import Frame, FrameMetrics
from perception.images import Blobs
from tests.support.signals import decoded

SETTINGS = WatchSettings()
CLIP = Clip(index=1, span=TimeSpan.of(30_000, 60_000))
Box = tuple[int, int, int, int]
ANNA, BEN, CARA = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
LEFT, RIGHT = (10, 10, 30, 40), (60, 12, 80, 42)
IMAGE = np.zeros((120, 200, 3), np.uint8)
RAW = np.array([3.0, 4.0], np.float32)
BOX = (20, 20, 80, 90)
RANDOM = np.random.default_rng(7)
PORTRAIT: Image = np.asarray(
    cv2.resize(RANDOM.integers(0, 255, (14, 12, 3), np.uint8), (60, 70)), np.uint8
)


def face(
    who: tuple[float, ...], box: Box = LEFT, score: float = 0.9, quality: float = 25.0
) -> Face:
    vector = np.array(who, np.float32)
    return Face(box, score, quality, (vector / np.linalg.norm(vector)).astype(np.float32))


@dataclass
class Engine:
    """Answers with what was put in for the frame it is shown, told by its brightness."""

    found: dict[int, list[Face]]
    name: str = "scripted"
    same_person: float = 0.3
    min_score: float = 0.6
    min_quality: float = 14.0
    asked: list[int] = field(default_factory=list)

    def faces(self, image: Image) -> list[Face]:
        index = int(image[0, 0, 0]) // 2
        self.asked.append(index)
        return self.found.get(index, [])


def frame(index: int, ms: int) -> Frame:
    picture = np.full((64, 96, 3), index * 2, np.uint8)
    picture[10:40, 10:30] = (200, 30, 30)
    return Frame(ms, FrameMetrics(0, 1, 1), av.VideoFrame.from_ndarray(picture, format="rgb24"))


def people(
    found: dict[int, list[Face]],
    step_ms: int = 1_000,
    shots: list[int] | None = None,
    engine: Engine | None = None,
) -> tuple[tuple[Group, ...], Blobs]:
    count = max(found, default=0) + 1
    frames = [frame(i, CLIP.span.start_ms + i * step_ms) for i in range(count)]
    engine = engine or Engine(found)
    seen = find_faces(frames, shots or [0] * count, (), engine, SETTINGS)
    blobs = Blobs()
    return group_faces(seen, engine.same_person, CLIP, SETTINGS, blobs), blobs


def seen_at(group: Group) -> list[int]:
    return [(s.span.start_ms - CLIP.span.start_ms) // 1_000 for s in group.sightings]


def test_a_person_seen_again_elsewhere_is_the_same() -> None:
    groups, _ = people({0: [face(ANNA)], 3: [face(ANNA, RIGHT)]})
    assert [seen_at(group) for group in groups] == [[0, 3]]


def test_two_faces_on_one_frame_are_two_people_however_alike() -> None:
    twins = [face(ANNA, LEFT), face(ANNA, RIGHT)]
    groups, _ = people({0: twins, 1: twins, 2: twins})
    assert [seen_at(group) for group in groups] == [[0, 1, 2], [0, 1, 2]]
    assert [group.sightings[0].box.x0 for group in groups if group.sightings[0].box] == [10, 60]


def test_three_people_come_and_go() -> None:
    groups, _ = people(
        {
            0: [face(BEN, RIGHT)],
            1: [face(BEN, RIGHT), face(ANNA)],
            4: [face(CARA)],
            5: [face(ANNA)],
        },
        shots=[0, 0, 0, 0, 1, 2],
    )
    assert [group.number for group in groups] == [0, 1, 2]
    assert [seen_at(group) for group in groups] == [[0, 1], [1, 5], [4]]


def test_a_face_that_stays_in_place_is_one_person_though_it_turns_away() -> None:
    groups, _ = people({0: [face(ANNA)], 1: [face((0.2, 0.0, 1.0))], 2: [face(ANNA)]})
    assert [seen_at(group) for group in groups] == [[0, 1, 2]]


def test_the_same_place_in_another_shot_is_another_person() -> None:
    groups, _ = people({0: [face(ANNA)], 1: [face(CARA)]}, shots=[0, 1])
    assert len(groups) == 2


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (face(ANNA, score=0.59), False),
        (face(ANNA, score=0.61), True),
        (face(ANNA, quality=14.0), False),
        (face(ANNA, quality=14.1), True),
    ],
)
def test_what_the_model_would_not_know_a_person_by_is_left_out(found: Face, kept: bool) -> None:
    assert bool(people({0: [found]})[0]) == kept


def test_a_model_stricter_than_the_paper_is_held_to_the_papers_thresholds() -> None:
    strict = Engine({0: [face(ANNA, score=0.86, quality=23.0)]}, min_score=0.95, min_quality=40)
    assert people(strict.found, engine=strict)[0]


def test_about_one_frame_a_second_is_looked_at_and_every_keyframe() -> None:
    frames = [frame(i, CLIP.span.start_ms + i * 200) for i in range(11)]
    engine = Engine({})
    find_faces(frames, [0] * 11, [3, 5], engine, SETTINGS)
    assert engine.asked == [0, 3, 5, 10]


def test_a_sighting_lasts_to_the_next_look_and_not_past_the_clip() -> None:
    frames = [frame(0, 30_000), frame(1, 59_600)]
    seen = find_faces(frames, [0, 0], (), Engine({0: [face(ANNA)], 1: [face(ANNA)]}), SETTINGS)
    (group,) = group_faces(seen, 0.3, CLIP, SETTINGS, Blobs())
    found = [s.span for s in group.sightings]
    assert found == [TimeSpan.of(30_000, 31_000), TimeSpan.of(59_600, 60_000)]


def test_the_best_sighting_alone_has_its_crop_with_a_margin() -> None:
    groups, blobs = people({i: [face(ANNA, quality=q)] for i, q in enumerate([20.0, 30.0, 25.0])})
    assert [bool(s.blob) for s in groups[0].sightings] == [False, True, False]
    crop = decoded(blobs[str(groups[0].sightings[1].blob)])
    assert crop.shape == (48, 32, 3)
    assert crop[24, 16, 2] > 150


def test_overlap_is_shared_over_covered_area() -> None:
    assert box_iou((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert box_iou((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert box_iou((0, 0, 10, 10), (20, 20, 30, 30)) == 0
    assert box_iou((0, 0, 0, 0), (0, 0, 0, 0)) == 0


@pytest.mark.parametrize(
    ("corners", "box"),
    [
        ((10.4, 20.6, 30.2, 40.9), (10, 20, 31, 41)),
        ((-9.0, -9.0, 5.0, 5.0), (0, 0, 5, 5)),
        ((190.0, 110.0, 400.0, 400.0), (190, 110, 200, 120)),
        ((210.0, 10.0, 230.0, 30.0), None),
        ((-30.0, 10.0, -2.0, 30.0), None),
        ((50.0, 50.0, 50.0, 60.0), None),
    ],
)
def test_boxes_are_within_images(corners: tuple[float, ...], box: tuple[int, ...] | None) -> None:
    face = make_face(IMAGE, np.array(corners, np.float32), 0.9, RAW)
    assert (face.box if face else None) == box


def test_quality_is_the_norm_and_the_vector_has_none() -> None:
    face = make_face(IMAGE, np.array([0, 0, 9, 9], np.float32), 1.2, RAW)
    assert face is not None
    assert (face.quality, face.score) == (5.0, 1.0)
    np.testing.assert_allclose(face.vector, [0.6, 0.8])


def looks(
    count: int, move: int = 0, noise: int = 2, portrait: Image = PORTRAIT
) -> list[DetectedFace]:
    """Looks at a portrait on a wall; a part of it as large as an eye moves to and fro."""
    found = []
    for number in range(count):
        frame, face = RANDOM.integers(0, 255, (120, 100, 3), np.uint8), portrait.copy()
        face[20:34, 10:50] = np.roll(face[20:34, 10:50], number % 2 * move, axis=1)
        frame[20:90, 20:80] = face
        jitter = RANDOM.integers(-noise, noise + 1, frame.shape)
        frame = np.clip(frame.astype(int) + jitter, 0, 255).astype(np.uint8)
        # A detector's box is not the same to a pixel.
        x0, y0 = BOX[0] + number % 2, BOX[1]
        face_found = Face((x0, y0, BOX[2], BOX[3]), 0.9, 25.0, np.array([1, 0], np.float32))
        crop = frame[5:115, 5:95]
        found.append(DetectedFace(number, 0, number * 1_000, face_found, crop, (5, 5)))
    return found


def test_a_face_that_never_moves_is_a_picture() -> None:
    assert is_still_image([looks(6)], SETTINGS)
    assert is_still_image([looks(3), looks(2)], SETTINGS)


def test_who_moves_no_more_than_an_eye_is_a_person() -> None:
    assert not is_still_image([looks(6, move=8)], SETTINGS)
    assert not is_still_image([looks(6), looks(2, move=8)], SETTINGS)


def test_without_enough_looks_a_face_is_a_person() -> None:
    assert not is_still_image([looks(3)], SETTINGS)
    assert not is_still_image([looks(6), looks(1)], SETTINGS)


def test_what_shows_nothing_that_could_move_says_nothing() -> None:
    assert not is_still_image([looks(6, portrait=np.full_like(PORTRAIT, 90), noise=0)], SETTINGS)


@pytest.mark.parametrize(("change", "found"), [(0.0, False), (255.0, True)])
def test_the_settings_say_how_little_may_change(change: float, found: bool) -> None:
    settings = SETTINGS.model_copy(update={"still_change": change})
    assert is_still_image([looks(6, move=8)], settings) == found
