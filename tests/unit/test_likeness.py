"""What images look like: alike where a picture was changed, unlike where it is another."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from models.ports import Image
from perception.likeness import ALIKE, HUES, LEVELS, NEARLY_SAME, SIZE, colour_shares, likeness


def drawn(number: int, height: int = 180, width: int = 320) -> Image:
    """A picture of coloured boxes, another one for each number."""
    draw = np.random.default_rng(number)
    image = np.full((height, width, 3), draw.integers(0, 255, 3), np.uint8)
    for _ in range(6):
        x, y = draw.integers(0, width - 40), draw.integers(0, height - 40)
        size = draw.integers(30, 120, 2)
        image[y : y + size[1], x : x + size[0]] = draw.integers(0, 255, 3)
    return image


def brighter(image: Image) -> Image:
    return np.asarray(np.clip(image.astype(np.float32) * 1.1 + 4, 0, 255), np.uint8)


def compressed(image: Image) -> Image:
    data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 40])[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


def smaller(image: Image) -> Image:
    return np.asarray(cv2.resize(image, (160, 90), interpolation=cv2.INTER_AREA), np.uint8)


def test_a_copy_is_nearly_the_same() -> None:
    for number in range(10):
        vector = likeness(drawn(number))
        assert vector @ likeness(smaller(drawn(number))) > NEARLY_SAME
        assert vector @ likeness(compressed(drawn(number))) > ALIKE


def test_a_copy_is_closer_than_any_other_picture() -> None:
    images = [drawn(number) for number in range(30)]
    every = np.stack([likeness(image) for image in images])
    changed = np.stack([likeness(brighter(smaller(image))) for image in images])
    assert (changed @ every.T).argmax(axis=1).tolist() == list(range(30))


def test_other_pictures_are_not_nearly_the_same() -> None:
    every = np.stack([likeness(drawn(number)) for number in range(30)])
    cosines = (every @ every.T)[~np.eye(30, dtype=bool)]
    assert cosines.max() < NEARLY_SAME
    assert np.median(cosines) < ALIKE


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (40, 3), (2000, 90)])
def test_any_size_gives_a_unit_vector(shape: tuple[int, int]) -> None:
    vector = likeness(np.full((*shape, 3), 128, np.uint8))
    assert vector.shape == (SIZE,)
    assert vector.dtype == np.float32
    assert np.isfinite(vector).all()
    noise = np.random.default_rng(0).integers(0, 255, (*shape, 3)).astype(np.uint8)
    assert np.linalg.norm(likeness(noise)) <= 1.0001


def test_two_images_of_one_thing_are_alike_at_the_border_of_two_hues() -> None:
    def hue(degrees: int) -> Image:
        pixel = np.full((90, 90, 3), (degrees // 2, 220, 220), np.uint8)
        return np.asarray(cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB), np.uint8)

    assert likeness(hue(14)) @ likeness(hue(16)) > likeness(hue(14)) @ likeness(hue(60))
    assert likeness(hue(14)) @ likeness(hue(16)) > 0.99 * (likeness(hue(14)) @ likeness(hue(14)))


def test_shares_of_colours_are_those_of_the_whole_image() -> None:
    image = np.zeros((100, 100, 3), np.uint8)
    image[:25] = (255, 0, 0)
    shares = colour_shares(likeness(image))
    assert shares.shape == (HUES, LEVELS, LEVELS)
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert shares[0, LEVELS - 1, LEVELS - 1] == pytest.approx(0.25, abs=0.01)
    assert shares[:, 0, 0].sum() == pytest.approx(0.75, abs=0.01)
