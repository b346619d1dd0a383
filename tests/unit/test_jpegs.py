"""Images as they are kept: named by what is in them, made smaller, and read clip after clip."""

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
from domain.settings import Settings
from models.ports import Image
from perception.decode import ClipReader, RawClip
from perception.jpeg import Blobs, shrink_jpeg
from perception.source import SourceInfo
from tests.support.full_suite import examples

RED = np.full((40, 60, 3), (200, 30, 20), np.uint8)


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
def test_the_longest_side_is_as_asked_and_the_shape_stays(
    height: int, width: int, side: int
) -> None:
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


def test_clips_in_order_are_decoded_once() -> None:
    decoded = Decoded(5)
    reader = decoded.reader()
    assert [reader.clip(n).clip.index for n in range(5)] == [0, 1, 2, 3, 4]
    assert decoded.begun == [0]


def test_a_clip_that_is_asked_for_again_is_decoded_again() -> None:
    decoded = Decoded(3)
    reader = decoded.reader()
    assert [reader.clip(n).clip.index for n in (1, 1, 2)] == [1, 1, 2]
    assert decoded.begun == [1, 1]


@given(st.lists(st.integers(0, 5), max_size=8))
def test_in_any_order_each_is_the_one_that_is_asked_for(order: list[int]) -> None:
    decoded = Decoded(6)
    reader = decoded.reader()
    assert [reader.clip(n).clip.index for n in order] == order
    before = [None, *order[:-1]]
    jumps = [n for was, n in zip(before, order, strict=False) if was is None or n - was != 1]
    assert decoded.begun == jumps


def test_one_that_is_not_there_any_more_is_reported_and_the_others_can_be_read() -> None:
    decoded = Decoded(2)
    reader = decoded.reader()
    for _ in range(2):
        with pytest.raises(MediaError, match=r"clip 2 of talk\.mp4 cannot be read: has it changed"):
            reader.clip(2)
    assert reader.clip(1).clip.index == 1
