from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.faces import CROP, FIVE_POINTS, align, make_face, suppress_overlaps

IMAGE = np.zeros((120, 200, 3), np.uint8)
RAW = np.array([3.0, 4.0], np.float32)


@given(st.floats(0.3, 4), st.floats(-np.pi, np.pi), st.floats(-200, 200), st.floats(-200, 200))
def test_a_turned_and_moved_face_lands_where_recognisers_expect_it(
    scale: float, angle: float, right: float, down: float
) -> None:
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    placed = FIVE_POINTS @ turn.T + (right, down)
    size = int(np.abs(placed).max() + 50)
    image = np.zeros((CROP, CROP, 3), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        seen: list[np.ndarray] = []

        def warp(_image: np.ndarray, matrix: np.ndarray, _size: tuple[int, int]) -> np.ndarray:
            seen.append(matrix)
            return image

        patch.setattr(cv2, "warpAffine", warp)
        align(np.zeros((size, size, 3), np.uint8), placed.astype(np.float32))
    landed = placed @ seen[0][:, :2].T + seen[0][:, 2]
    np.testing.assert_allclose(landed, FIVE_POINTS, atol=0.05)


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
    assert face.quality == 5.0
    assert face.score == 1.0
    np.testing.assert_allclose(face.vector, [0.6, 0.8])


boxes = st.lists(
    st.tuples(
        st.floats(0, 90), st.floats(0, 90), st.floats(1, 40), st.floats(1, 40), st.floats(0, 1)
    ),
    max_size=12,
)


@given(boxes)
def test_of_overlapping_boxes_the_best_stays(rows: list[tuple[float, ...]]) -> None:
    table = np.array(rows, np.float32).reshape(-1, 5)
    corners = np.hstack([table[:, :2], table[:, :2] + table[:, 2:4]])
    kept = suppress_overlaps(corners, table[:, 4], 0.3)
    assert len(kept) == len(set(kept))
    assert [table[i, 4] for i in kept] == sorted((table[i, 4] for i in kept), reverse=True)
    assert bool(kept) == bool(rows)
    for index in range(len(rows)):
        clear = all(_iou(corners[index], corners[other]) < 0.3 for other in kept)
        assert (index in kept) or not clear


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    shared = np.prod(np.maximum(0, np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])))
    return float(shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared))
