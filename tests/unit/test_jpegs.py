"""Images as they are kept, what they look like, and the line on their colours."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import BlobGone, MediaError
from domain.media import Keyframe, Percept, SeenObject
from domain.memories import MemoryDraft, MemorySource
from domain.settings import Settings
from memory.writers.local_clip import LocalClipWriter, describe_colours
from memory.writers.port import ClipContext
from models.ports import Image
from people.characters import ClipPeople
from perception.decode import ClipReader, RawClip
from perception.images import (
    ALIKE,
    HUES,
    LEVELS,
    NEARLY_SAME,
    SIZE,
    Blobs,
    colour_shares,
    likeness,
    shrink_jpeg,
)
from perception.source import SourceInfo
from tests.support.full_suite import examples
from tests.support.memory import VIDEO, keyframe, percept, said, span

RED = np.full((40, 60, 3), (200, 30, 20), np.uint8)
RED_OF_COLOURS, BLUE, BLACK, WHITE = (220, 10, 10), (20, 40, 230), (2, 2, 2), (250, 250, 250)
BROWN, NAVY = (130, 80, 30), (10, 10, 60)


def read(data: bytes) -> Image:
    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert found is not None
    return np.asarray(found[:, :, ::-1], np.uint8)


def jpeg(height: int, width: int) -> bytes:
    blobs = Blobs()
    return blobs[blobs.add(np.resize(RED, (height, width, 3)), 90)]


def test_an_image_goes_by_the_digest_of_its_bytes() -> None:
    blobs = Blobs()
    name = blobs.add(RED, 90)
    assert list(blobs) == [name]
    assert hashlib.sha256(blobs[name]).hexdigest() == name
    assert blobs.add(RED.copy(), 90) == name
    assert blobs.add(RED[:, ::-1] // 2, 90) != name
    assert len(blobs) == 2


def test_colours_are_those_that_were_seen() -> None:
    blobs = Blobs()
    shown = read(blobs[blobs.add(RED, 95)])
    assert shown.shape == RED.shape
    assert np.abs(shown.astype(int) - RED).max() < 8


@settings(max_examples=examples(15, 40))
@given(st.integers(1, 120), st.integers(1, 120), st.integers(1, 60))
def test_longest_side_is_as_asked_and_the_shape_stays(height: int, width: int, side: int) -> None:
    data, wide, tall = shrink_jpeg(jpeg(height, width), side)
    assert read(data).shape == (tall, wide, 3)
    assert max(tall, wide) == side
    assert abs(tall * width - wide * height) <= max(height, width)


@pytest.mark.parametrize("data", [b"", b"no image", jpeg(20, 20)[:30]])
def test_one_that_cannot_be_read_is_reported_with_what_to_do(data: bytes) -> None:
    with pytest.raises(BlobGone, match="homer check"):
        shrink_jpeg(data, 10)


class Decoded:
    """Clips of a file of so many, decoded in order from where one begins; notes where."""

    def __init__(self, clips: int) -> None:
        self.clips, self.begun = clips, list[int]()

    def __call__(self, *given: Any) -> Iterator[RawClip]:
        self.begun.append(given[-1])
        for index in range(given[-1], self.clips):
            yield cast(RawClip, SimpleNamespace(clip=SimpleNamespace(index=index)))

    def reader(self) -> ClipReader:
        info = cast(SourceInfo, None)
        return ClipReader(Path("talk.mp4"), info, Settings().watch, self)


@given(st.lists(st.integers(0, 5), max_size=8))
def test_in_any_order_each_is_the_one_that_is_asked_for(order: list[int]) -> None:
    decoded = Decoded(6)
    reader = decoded.reader()
    assert [reader.clip(n).clip.index for n in order] == order
    before = [None, *order[:-1]]
    jumps = [n for was, n in zip(before, order, strict=False) if was is None or n - was != 1]
    assert decoded.begun == jumps


def test_one_that_is_not_there_any_more_is_reported_and_the_others_can_be_read() -> None:
    reader = Decoded(2).reader()
    for _ in range(2):
        with pytest.raises(MediaError, match=r"clip 2 of talk\.mp4 cannot be read: has it changed"):
            reader.clip(2)
    assert reader.clip(1).clip.index == 1


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


def smaller(image: Image) -> Image:
    return np.asarray(cv2.resize(image, (160, 90), interpolation=cv2.INTER_AREA), np.uint8)


def test_a_copy_is_nearly_the_same() -> None:
    for number in range(10):
        vector = likeness(drawn(number))
        assert vector @ likeness(smaller(drawn(number))) > NEARLY_SAME
        data = cv2.imencode(".jpg", drawn(number), [cv2.IMWRITE_JPEG_QUALITY, 40])[1]
        assert vector @ likeness(np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)) > ALIKE


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


def painted(*colours: tuple[int, int, int]) -> Image:
    """Stripes of these colours, equally wide."""
    return np.repeat(np.array(colours, np.uint8)[None], 90, axis=0).repeat(60, axis=1)


def measured(time_s: float, *colours: tuple[int, int, int]) -> Keyframe:
    vector = tuple(likeness(painted(*colours)).tolist())
    return keyframe(time_s).model_copy(update={"likeness": vector})


def written(seen: Percept) -> list[MemoryDraft]:
    people = ClipPeople()
    drafts = LocalClipWriter().write(seen, people, ClipContext(VIDEO)).drafts
    return [draft for draft in drafts if draft.source == MemorySource.COLOURS]


@pytest.mark.parametrize(
    ("colours", "text"),
    [
        ((BLACK,), "dark, mostly black"),
        ((WHITE,), "bright, mostly white"),
        ((RED_OF_COLOURS, RED_OF_COLOURS, BLUE), "bright, mostly red and blue"),
        ((BROWN,), "mostly brown"),
        ((NAVY,), "dark, mostly dark blue"),
        (
            (RED_OF_COLOURS, (10, 200, 20), BLUE, WHITE, BLACK, (240, 230, 10)),
            "bright, of many colours",
        ),
    ],
)
def test_colours_are_named_by_share(colours: tuple[tuple[int, int, int], ...], text: str) -> None:
    assert describe_colours(colour_shares(likeness(painted(*colours)))) == text


def test_a_clip_without_any_other_line_has_one_on_its_colours() -> None:
    seen = percept(0, keyframes=(measured(4, BLACK), measured(20, BLACK)))
    (line,) = written(seen)
    assert (line.text, line.span) == ("Picture: dark, mostly black.", span(4, 21))
    (spoken,) = written(seen.model_copy(update={"utterances": (said(1, "Hello."),)}))
    assert spoken == line


def test_where_anything_was_recognised_there_is_none() -> None:
    cup = SeenObject.model_validate(
        {"time_ms": 4000, "label": "cup", "score": 0.9, "box": {"x0": 0, "y0": 0, "x1": 9, "y1": 9}}
    )
    assert written(percept(0, keyframes=(measured(4, BLACK),), objects=(cup,))) == []
