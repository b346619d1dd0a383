"""Pictures and sound for tests: from the shared clips, and made up."""

from __future__ import annotations

from pathlib import Path

import av
import cv2
import numpy as np

from models.ports import Image, Samples

SAMPLE_HZ = 16_000


def frame_at(path: Path, seconds: float) -> Image:
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            if frame.time is not None and frame.time >= seconds:
                return np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
    raise AssertionError(f"{path} ends before {seconds} s")


def decoded(data: bytes) -> Image:
    """The picture in a file's bytes, blue first as OpenCV has it."""
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None, "these bytes are no picture"
    return np.asarray(picture, np.uint8)


def samples_of(path: Path, start_s: float = 0.0, end_s: float = 1e9) -> Samples:
    """The sound of a file between two times, 16 kHz mono."""
    resampler = av.AudioResampler("s16", "mono", SAMPLE_HZ)
    with av.open(str(path)) as container:
        pieces = [
            piece.to_ndarray()[0]
            for frame in container.decode(audio=0)
            for piece in resampler.resample(frame)
        ]
    whole: Samples = np.concatenate(pieces).astype(np.float32) / np.float32(32_768)
    return whole[int(start_s * SAMPLE_HZ) : int(min(end_s * SAMPLE_HZ, len(whole)))]


def slide(*lines: str, width: int = 960, height: int = 540) -> Image:
    image = np.full((height, width, 3), 255, np.uint8)
    for row, line in enumerate(lines):
        place = (40, 90 + 90 * row)
        cv2.putText(image, line, place, cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3, cv2.LINE_AA)
    return image


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * SAMPLE_HZ), np.float32)


def noise(seconds: float, seed: int = 0) -> Samples:
    made = np.random.default_rng(seed).normal(0, 0.02, int(seconds * SAMPLE_HZ))
    return made.astype(np.float32)
