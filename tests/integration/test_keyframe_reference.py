"""Keyframes beside eq. 1 and 2 on every whole picture: the same shots, pictures as good."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.keyframes import QUALITY, homer, reference
from perception.source import probe
from tests.support.full_suite import in_full

SIZE, FPS, SECONDS = (480, 270), 5, 32
BT709 = {"colorspace": "bt709", "color_primaries": "bt709", "color_trc": "bt709"}


@pytest.mark.parametrize(
    ("pixels", "options"),
    [("yuv420p", {}), *map(in_full, (("yuv420p", BT709), ("yuv420p10le", {})))],
)
def test_shots_are_those_of_whole_pictures_and_keyframes_as_good(
    tmp_path: Path, pixels: str, options: dict[str, str]
) -> None:
    video = tmp_path / "scenes.mkv"
    with av.open(str(video), "w") as out:
        stream = out.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", **options})
        stream.width, stream.height = SIZE
        stream.pix_fmt = pixels
        for index in range(FPS * SECONDS):
            picture = av.VideoFrame.from_ndarray(scene(index), format="rgb24")
            picture.pts, picture.time_base = index, Fraction(1, FPS)
            out.mux(stream.encode(picture))
        out.mux(stream.encode(None))
    info = replace(probe(video), has_audio=False)
    for ours, theirs in zip(homer(video, info), reference(video, info), strict=True):
        assert ours.shots == theirs.shots
        assert len(ours.keyframes) == len(theirs.keyframes)
        assert ours.shots_of_keyframes() == theirs.shots_of_keyframes()
        least = QUALITY * theirs.mean_quality(theirs.keyframes)
        assert theirs.mean_quality(ours.keyframes) >= least


def scene(index: int) -> NDArray[np.uint8]:
    """Return a picture of patches that drift, more or less blurred; a new one every 4 seconds."""
    number, step = divmod(index, 4 * FPS)
    random = np.random.default_rng(number)
    # Of brightness near that of the scene before: changes lie on both sides of the threshold.
    patches = random.integers(10 * number, 90 + 14 * number, (15, 24, 3)).astype(np.uint8)
    large = cv2.resize(patches, SIZE, interpolation=cv2.INTER_NEAREST)
    grain = random.integers(0, 12, large.shape).astype(np.uint8)
    blur = 0.3 + 1.5 * abs(np.sin(step / 7))
    moved = np.roll(large + grain, 2 * step, axis=1)
    return np.asarray(cv2.GaussianBlur(moved, (0, 0), blur), np.uint8)
