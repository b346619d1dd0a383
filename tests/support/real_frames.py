"""Frames of the shared clips, decoded small and kept for the session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import av
import cv2
import numpy as np

from models.ports import Image


@cache
def frames_of(path: Path, step_s: float, most: int, height: int = 120) -> tuple[Image, ...]:
    """Decode the first frame of each ``step_s`` seconds, at most so many: H x W x 3, BGR."""
    found: list[Image] = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for picture in container.decode(stream):
            if float(picture.time or 0) < len(found) * step_s:
                continue
            width = round(picture.width * height / picture.height)
            image = picture.to_ndarray(format="bgr24").astype(np.uint8, copy=False)
            small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
            found.append(np.asarray(small, np.uint8))
            if len(found) == most:
                break
    return tuple(found)
