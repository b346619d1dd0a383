"""How good a frame is (eq. 2), and how much it differs from the one before (eq. 1).

Both are measured at full resolution on what OpenCV would read, with one exception: the hue
histogram, whose shares hardly depend on how many pixels are counted, is of every n-th row and
column, about 180 of the shorter side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np
from av.video.reformatter import VideoReformatter

from perception.frames import Marks

if TYPE_CHECKING:
    import av
    from numpy.typing import NDArray

    Grey = NDArray[np.uint8]

_HUE_SIDE = 180
_HUES = 180
_LAYOUT = (64, 36)
"""Size at which two pictures are compared in what lies where."""
_STILL = 10.0
"""A smaller change is a cut by no threshold that makes sense."""


class QualityMeter:
    """Measures frame after frame; remembers the grey of the last one."""

    def __init__(self, hue_bins: int) -> None:
        self._bins = hue_bins
        self.first: Grey | None = None
        """The grey of the first frame."""
        self._before: Grey | None = None
        # Kept, since it is set up for one size of picture and then used again and again. So is the
        # room for the next grey and for edges: large arrays take longer to get than to fill.
        self._reformatter = VideoReformatter()
        self._room: Grey | None = None
        self._edges: NDArray[np.int16] | None = None

    def forget(self) -> None:
        """Start anew: the next frame is the first."""
        self.first = self._before = None

    @property
    def last(self) -> Grey | None:
        """The grey of the last frame; it is not written to once all is forgotten."""
        return self._before

    def measure(self, picture: av.VideoFrame) -> Marks:
        """Marks of ``picture``; its ``change`` is against the picture measured before."""
        bgr = _pixels(self._reformatter.reformat(picture, format="bgr24", threads=1))
        grey = np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY, dst=self._room), np.uint8)
        self._room, before, self._before = self._before, self._before, grey
        if before is None:
            self.first = grey.copy()
        change, alike = (0.0, 0.0) if before is None else compared(before, grey)
        self._edges = edges_of(grey, self._edges)
        return Marks(change, variance(self._edges), hue_entropy(points(bgr), self._bins), alike)


def _pixels(picture: av.VideoFrame) -> NDArray[np.uint8]:
    """The H x W x 3 pixels of a packed picture as they lie in its memory, without a copy."""
    plane = picture.planes[0]
    shape = (picture.height, picture.width, 3)
    return np.ndarray(shape, np.uint8, memoryview(plane), strides=(plane.line_size, 3, 1))


def compared(before: Grey, now: Grey) -> tuple[float, float]:
    """The ``change`` and ``alike`` of marks, of two H x W planes."""
    change = grey_change(before, now)
    return change, layout_likeness(before, now) if change > _STILL else 0.0


def grey_change(before: Grey, now: Grey) -> float:
    """Mean absolute difference (eq. 1) of two H x W planes; 255 where the size changed."""
    if before.shape != now.shape:
        return 255.0
    return cv2.norm(before, now, cv2.NORM_L1) / now.size


def layout_likeness(before: Grey, now: Grey) -> float:
    """Correlation of two H x W planes at a small size, -1 to 1; 0 where one of them is even."""
    small = [cv2.resize(grey, _LAYOUT, interpolation=cv2.INTER_AREA) for grey in (before, now)]
    one, other = (plane.astype(np.float64) - plane.mean() for plane in small)
    size = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / size if size else 0.0


def sharpness(grey: Grey) -> float:
    """Variance of the 4-neighbour Laplacian of an H x W plane."""
    return variance(edges_of(grey))


def edges_of(grey: Grey, room: NDArray[np.int16] | None = None) -> NDArray[np.int16]:
    """The 4-neighbour Laplacian of an H x W plane, in ``room`` where it fits."""
    # 16 bits hold every value (-1020..1020), and sums of whole numbers are exact and fast.
    return np.asarray(cv2.Laplacian(grey, cv2.CV_16S, dst=room), np.int16)


def variance(edges: NDArray[np.int16]) -> float:
    """Of an H x W plane of whole numbers."""
    mean = cv2.sumElems(edges)[0] / edges.size
    return max(0.0, cv2.norm(edges, cv2.NORM_L2SQR) / edges.size - mean * mean)


def points(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Every n-th pixel of an H x W x 3 image, about 180 rows or columns of them."""
    step = max(1, min(image.shape[:2]) // _HUE_SIDE)
    if step == 1:
        return image
    rows = image[::step]
    size = (image.shape[1] // step, len(rows))
    return np.asarray(cv2.resize(rows, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def hue_entropy(bgr: NDArray[np.uint8], bins: int) -> float:
    """Entropy in bits of the hue histogram of an H x W x 3 image: 0 to log2(bins)."""
    hue = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    counts = cv2.calcHist([hue], [0], None, [bins], [0, _HUES]).ravel()
    shares = counts[counts > 0] / hue[..., 0].size
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def quality(marks: Marks, entropy_weight: float) -> float:
    """Eq. 2: sharpness x (1 + weight x entropy)."""
    return marks.sharpness * (1.0 + entropy_weight * marks.entropy)
