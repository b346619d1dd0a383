"""A picture of a face is nobody; a person who sits still is somebody."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from domain.settings import WatchSettings
from models.ports import Face, Image
from perception.faces import DetectedFace, is_still_image

SETTINGS = WatchSettings()
BOX = (20, 20, 80, 90)
RANDOM = np.random.default_rng(7)
PORTRAIT: Image = np.asarray(
    cv2.resize(RANDOM.integers(0, 255, (14, 12, 3), np.uint8), (60, 70)), np.uint8
)


def looks(
    count: int, move: int = 0, noise: int = 2, portrait: Image = PORTRAIT
) -> list[DetectedFace]:
    """Looks at a portrait on a wall; a part of it as large as an eye moves to and fro."""
    return [look(n, (n % 2) * move, noise, portrait) for n in range(count)]


def look(number: int, move: int, noise: int, portrait: Image) -> DetectedFace:
    frame = RANDOM.integers(0, 255, (120, 100, 3), np.uint8)
    face = portrait.copy()
    face[20:34, 10:50] = np.roll(face[20:34, 10:50], move, axis=1)
    frame[20:90, 20:80] = face
    jitter = RANDOM.integers(-noise, noise + 1, frame.shape)
    frame = np.clip(frame.astype(int) + jitter, 0, 255).astype(np.uint8)
    # A detector's box is not the same to a pixel.
    x0, y0 = BOX[0] + number % 2, BOX[1]
    face_found = Face((x0, y0, BOX[2], BOX[3]), 0.9, 25.0, np.array([1, 0], np.float32))
    return DetectedFace(number, 0, number * 1_000, face_found, frame[5:115, 5:95], (5, 5))


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
