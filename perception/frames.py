"""A sampled frame: its time, its metrics, and its pixels on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import av
import numpy as np

if TYPE_CHECKING:
    from models.ports import Image


@dataclass(frozen=True)
class FrameMetrics:
    """Metrics of a frame for eq. 1 and eq. 2.

    Attributes:
        change: Mean absolute grey difference to the previous sample, 0-255; 0 on a clip's first.
        sharpness: Variance of the Laplacian of luma.
        entropy: Entropy of the hue histogram, in bits.
        layout_similarity: Correlation of the two pictures at a small size, -1 to 1; 0 where the
            change is too small to be a cut.
    """

    change: float
    sharpness: float
    entropy: float
    layout_similarity: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame shown at a sample instant. ``time_ms`` is when it first appeared, within its clip.

    The picture is held as it was decoded (at most ``frame_height`` high); ``image`` turns it
    upright and into RGB anew at each use, since few frames of a clip are ever looked at.
    """

    time_ms: int
    metrics: FrameMetrics
    picture: av.VideoFrame
    rotation: int = 0

    @property
    def image(self) -> Image:
        """Return the pixels: H x W x 3, RGB, uint8, upright."""
        rgb = self.picture.to_ndarray(format="rgb24", threads=1).astype(np.uint8, copy=False)
        return np.ascontiguousarray(np.rot90(rgb, self.rotation // 90))


def shrink(picture: av.VideoFrame, rotation: int, height: int) -> av.VideoFrame:
    """Shrink a picture to at most ``height`` upright rows; return it unchanged if it fits."""
    rows = picture.width if rotation in (90, 270) else picture.height
    if rows <= height:
        return picture
    ratio = height / rows
    return picture.reformat(
        max(2, round(picture.width * ratio)),
        max(2, round(picture.height * ratio)),
        "yuv420p",
        interpolation="AREA",
        threads=1,
    )
