"""Every detector of things keeps the same promises, with its real weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from domain.errors import WeightsMissing
from models.ports import Image, ObjectDetector, Thing
from models.profile import load_profile
from models.toolbox import Toolbox
from models.yolox import coco_labels, letterbox
from store.home import Home
from tests.support.signals import frame_at

Shared = Callable[[str], Path]
WEIGHTS = Home.default().weights


@pytest.fixture(scope="module")
def detector() -> ObjectDetector:
    try:
        found = Toolbox(load_profile("local"), WEIGHTS).objects
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def meeting(shared_media: Shared) -> Image:
    """A man in a tie, large, before a chair."""
    return frame_at(shared_media("of_meeting.mp4"), 5.0)


def inside(box: tuple[int, int, int, int], image: Image) -> bool:
    x0, y0, x1, y1 = box
    return bool(0 <= x0 < x1 <= image.shape[1] and 0 <= y0 < y1 <= image.shape[0])


def overlap(a: Thing, b: Thing) -> float:
    width = min(a.box[2], b.box[2]) - max(a.box[0], b.box[0])
    height = min(a.box[3], b.box[3]) - max(a.box[1], b.box[1])
    shared = max(0, width) * max(0, height)
    areas = [(t.box[2] - t.box[0]) * (t.box[3] - t.box[1]) for t in (a, b)]
    return shared / (sum(areas) - shared)


def test_people_are_found_each_once(detector: ObjectDetector, shared_media: Shared) -> None:
    image = frame_at(shared_media("msdwild_00001.mp4"), 0.0)
    people = [thing for thing in detector.objects(image) if thing.label == "person"]
    assert len(people) == 3
    assert sorted((p.box[0] + p.box[2]) // 2 // 300 for p in people) == [1, 2, 3]


def test_things_are_well_formed(detector: ObjectDetector, meeting: Image) -> None:
    found = detector.objects(meeting)
    assert {"person", "tie", "chair"} <= {thing.label for thing in found}
    assert [one.score for one in found] == sorted((t.score for t in found), reverse=True)
    for thing in found:
        assert thing.label in detector.labels
        assert detector.min_score <= thing.score <= 1
        assert inside(thing.box, meeting)
    same = [(a, b) for a in found for b in found if a is not b and a.label == b.label]
    assert all(overlap(a, b) < 0.5 for a, b in same)


def test_a_thing_is_where_it_is_at_any_size(detector: ObjectDetector, meeting: Image) -> None:
    tie = next(thing for thing in detector.objects(meeting) if thing.label == "tie")
    twice = np.repeat(np.repeat(meeting, 2, axis=0), 2, axis=1)
    larger = next(thing for thing in detector.objects(twice) if thing.label == "tie")
    assert larger.box == pytest.approx([2 * side for side in tie.box], abs=24)


def test_an_image_has_the_same_things_anywhere(detector: ObjectDetector, meeting: Image) -> None:
    images = [meeting, np.ascontiguousarray(meeting[:, ::-1]), np.ascontiguousarray(meeting[60:])]
    first = [detector.objects(image) for image in images]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(detector.objects, images)) == first


@pytest.mark.parametrize("shape", [(1, 1), (8, 600), (15, 15), (40, 3000), (720, 1280)])
def test_nothing_is_on_empty_images(detector: ObjectDetector, shape: tuple[int, int]) -> None:
    assert detector.objects(np.full((*shape, 3), 90, np.uint8)) == []


def test_the_kinds_are_those_of_coco() -> None:
    assert (len(coco_labels()), coco_labels()[0], coco_labels()[63], coco_labels()[-1]) == (
        80,
        "person",
        "laptop",
        "toothbrush",
    )


@pytest.mark.parametrize("size", [(100, 50), (50, 100), (416, 416), (1080, 1920)])
def test_an_image_is_put_whole_into_the_square(size: tuple[int, int]) -> None:
    image = np.zeros((*size, 3), np.uint8)
    image[..., 0] = 200
    square, scale = letterbox(image, 416)
    assert square.shape == (1, 3, 416, 416)
    assert scale == pytest.approx(416 / max(size))
    height, width = (int(side * scale) for side in size)
    # Blue first, as the model has learned it; grey beside and below.
    assert (square[0, :, height - 1, width - 1] == (0, 0, 200)).all()
    assert (square[0, :, height:] == 114).all()
    assert (square[0, :, :, width:] == 114).all()
