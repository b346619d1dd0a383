"""Measures the quality of a frame (eq. 2) and its change from the previous one (eq. 1).

Both are measured at full resolution on what OpenCV would read, with one exception: the hue
histogram, whose shares hardly depend on how many pixels are counted, is of every n-th row and
column, about 180 of the shorter side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
from av.video.reformatter import VideoReformatter

from perception.frames import FrameMetrics

if TYPE_CHECKING:
    import av
    from numpy.typing import NDArray

    Grey = NDArray[np.uint8]

_HUE_SIDE = 180
_HUES = 180
_LAYOUT_SIZE = (64, 36)
"""Size at which two pictures are compared in what lies where."""
_MIN_LAYOUT_CHANGE = 10.0
"""A smaller change is a cut by no threshold that makes sense."""


class QualityMeter:
    """Measures frame after frame, each against the previous one."""

    def __init__(self, hue_bins: int) -> None:
        self._bins = hue_bins
        self.first: Grey | None = None
        """The grey of the first frame."""
        self._last: Grey | None = None
        # Kept, since it is set up for one size of picture and then used again and again. So is the
        # room for the next grey and for edges: large arrays take longer to get than to fill.
        self._reformatter = VideoReformatter()
        self._grey_buffer: Grey | None = None
        self._laplacian: NDArray[np.int16] | None = None

    def reset(self) -> None:
        """Start anew: the next frame is the first."""
        self.first = self._last = None

    @property
    def last(self) -> Grey | None:
        """The grey plane of the last frame; not written to after ``reset``."""
        return self._last

    def measure(self, picture: av.VideoFrame) -> FrameMetrics:
        """Measure ``picture``; its ``change`` is against the picture measured before."""
        bgr = _pixels(self._reformatter.reformat(picture, format="bgr24", threads=1))
        grey = np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY, dst=self._grey_buffer), np.uint8)
        self._grey_buffer, before, self._last = self._last, self._last, grey
        if before is None:
            self.first = grey.copy()
        change, similarity = (0.0, 0.0) if before is None else compare(before, grey)
        self._laplacian = laplacian(grey, self._laplacian)
        return FrameMetrics(
            change,
            variance(self._laplacian),
            hue_entropy(subsample_pixels(bgr), self._bins),
            similarity,
        )


def _pixels(picture: av.VideoFrame) -> NDArray[np.uint8]:
    """Return the H x W x 3 pixels of a packed picture without a copy."""
    plane = picture.planes[0]
    shape = (picture.height, picture.width, 3)
    return np.ndarray(shape, np.uint8, memoryview(plane), strides=(plane.line_size, 3, 1))


def compare(before: Grey, now: Grey) -> tuple[float, float]:
    """Return change and layout similarity of two H x W planes."""
    change = grey_change(before, now)
    return change, layout_similarity(before, now) if change > _MIN_LAYOUT_CHANGE else 0.0


def grey_change(before: Grey, now: Grey) -> float:
    """Return the mean absolute difference (eq. 1), 0-255; 255 where the size changed."""
    if before.shape != now.shape:
        return 255.0
    return cv2.norm(before, now, cv2.NORM_L1) / now.size


def layout_similarity(before: Grey, now: Grey) -> float:
    """Return the correlation of two H x W planes at a small size, -1 to 1; 0 if one is uniform."""
    small = [cv2.resize(grey, _LAYOUT_SIZE, interpolation=cv2.INTER_AREA) for grey in (before, now)]
    one, other = (plane.astype(np.float64) - plane.mean() for plane in small)
    size = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / size if size else 0.0


def sharpness(grey: Grey) -> float:
    """Return the variance of the 4-neighbour Laplacian of an H x W plane."""
    return variance(laplacian(grey))


def laplacian(grey: Grey, buffer: NDArray[np.int16] | None = None) -> NDArray[np.int16]:
    """Return the 4-neighbour Laplacian of an H x W plane, in ``buffer`` where it fits."""
    # 16 bits hold every value (-1020..1020), and sums of whole numbers are exact and fast.
    return np.asarray(cv2.Laplacian(grey, cv2.CV_16S, dst=buffer), np.int16)


def variance(plane: NDArray[np.int16]) -> float:
    """Return the variance of an H x W plane of whole numbers."""
    mean = cv2.sumElems(plane)[0] / plane.size
    return max(0.0, cv2.norm(plane, cv2.NORM_L2SQR) / plane.size - mean * mean)


def subsample_pixels(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return every n-th pixel of an H x W x 3 image: about 180 on the shorter side."""
    step = max(1, min(image.shape[:2]) // _HUE_SIDE)
    if step == 1:
        return image
    rows = image[::step]
    size = (image.shape[1] // step, len(rows))
    return np.asarray(cv2.resize(rows, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def hue_entropy(bgr: NDArray[np.uint8], bins: int) -> float:
    """Return the entropy, 0 to log2(bins) bits, of the hue histogram of an H x W x 3 image."""
    hue = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    counts = cv2.calcHist([hue], [0], None, [bins], [0, _HUES]).ravel()
    shares = counts[counts > 0] / hue[..., 0].size
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def quality(metrics: FrameMetrics, entropy_weight: float) -> float:
    """Return the quality of a frame (eq. 2): sharpness x (1 + weight x entropy)."""
    return metrics.sharpness * (1.0 + entropy_weight * metrics.entropy)
