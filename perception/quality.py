"""How good a frame is (eq. 2), and how much it differs from the one before (eq. 1).

Both are measured on the decoder's own planes. Grey is the luma plane (limited range stretched to
0-255), which is what a conversion to RGB and back to grey gives up to rounding; it is used at
full resolution. Hue is read from every n-th pixel, about 320 x 180 of them: points, not
averages, so that the histogram keeps its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from perception.frames import Marks

if TYPE_CHECKING:
    import av
    from numpy.typing import NDArray

_LUMA_FIRST = ("yuv4", "yuvj4", "yuva4", "nv12", "nv21", "gray")
_FULL_RANGE = 2
_LIMITED_STRETCH = 255.0 / 219.0
_HUE_SIDE = 180
_HUES = 180


class Meter:
    """Measures frame after frame; remembers the grey of the last one."""

    def __init__(self, hue_bins: int) -> None:
        self._bins = hue_bins
        self._before: NDArray[np.uint8] | None = None

    def forget(self) -> None:
        """Start anew: the next frame is the first."""
        self._before = None

    def measure(self, picture: av.VideoFrame) -> Marks:
        """Marks of ``picture``; its ``change`` is against the picture measured before."""
        grey, stretch = luma(picture)
        change = 0.0 if self._before is None else grey_change(self._before, grey) * stretch
        self._before = grey
        return Marks(
            change=change,
            sharpness=sharpness(grey) * stretch**2,
            entropy=hue_entropy(points(picture), self._bins),
        )


def luma(picture: av.VideoFrame) -> tuple[NDArray[np.uint8], float]:
    """The luma plane, H x W, and the factor that stretches it to 0-255."""
    if not _has_byte_luma(picture.format.name):
        picture = picture.reformat(format="yuv420p")
    full = picture.color_range == _FULL_RANGE or picture.format.name.startswith(("yuvj", "gray"))
    return plane(picture, 0), 1.0 if full else _LIMITED_STRETCH


def plane(picture: av.VideoFrame, index: int) -> NDArray[np.uint8]:
    """One plane of 8-bit values as it lies in the picture's memory, without a copy."""
    found = picture.planes[index]
    rows = np.frombuffer(memoryview(found), np.uint8).reshape(-1, found.line_size)
    return rows[: found.height, : found.width]


def _has_byte_luma(name: str) -> bool:
    return name.startswith(_LUMA_FIRST) and not name.endswith(("le", "be"))


def grey_change(before: NDArray[np.uint8], now: NDArray[np.uint8]) -> float:
    """Mean absolute difference (eq. 1) of two H x W planes; 255 where the size changed."""
    if before.shape != now.shape:
        return 255.0
    return cv2.norm(before, now, cv2.NORM_L1) / now.size


def sharpness(grey: NDArray[np.uint8]) -> float:
    """Variance of the 4-neighbour Laplacian of an H x W plane."""
    # 16 bits hold every value (-1020..1020), and sums of whole numbers are exact and fast.
    edges = cv2.Laplacian(grey, cv2.CV_16S)
    mean = cv2.sumElems(edges)[0] / edges.size
    return max(0.0, cv2.norm(edges, cv2.NORM_L2SQR) / edges.size - mean * mean)


def points(picture: av.VideoFrame) -> NDArray[np.uint8]:
    """Every n-th pixel of the picture, h x w x 3 BGR, about 180 rows or columns."""
    step = max(1, min(picture.width, picture.height) // _HUE_SIDE)
    if picture.format.name == "yuv420p" and min(picture.width, picture.height) >= 2 * step:
        return _points_of_planes(picture, step)
    width, height = max(1, picture.width // step), max(1, picture.height // step)
    small = picture.reformat(width, height, "bgr24", interpolation="POINT", threads=1)
    return small.to_ndarray().astype(np.uint8, copy=False)


def _points_of_planes(picture: av.VideoFrame, step: int) -> NDArray[np.uint8]:
    """Every n-th value of each plane is again a picture with half as many rows of colour."""
    u, v = (plane(picture, i)[::step, ::step] for i in (1, 2))
    rows, columns = u.shape
    grey = plane(picture, 0)[::step, ::step][: 2 * rows, : 2 * columns]
    rows, columns = grey.shape[0] // 2, grey.shape[1] // 2
    packed = np.empty((3 * rows, 2 * columns), np.uint8)
    packed[: 2 * rows] = grey[: 2 * rows, : 2 * columns]
    colour = packed[2 * rows :].reshape(2, rows, columns)
    colour[0], colour[1] = u[:rows, :columns], v[:rows, :columns]
    return np.asarray(cv2.cvtColor(packed, cv2.COLOR_YUV2BGR_I420), np.uint8)


def hue_entropy(bgr: NDArray[np.uint8], bins: int) -> float:
    """Entropy in bits of the hue histogram of an H x W x 3 image: 0 to log2(bins)."""
    hue = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    counts = cv2.calcHist([hue], [0], None, [bins], [0, _HUES]).ravel()
    shares = counts[counts > 0] / hue[..., 0].size
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def quality(marks: Marks, entropy_weight: float) -> float:
    """Eq. 2: sharpness x (1 + weight x entropy)."""
    return marks.sharpness * (1.0 + entropy_weight * marks.entropy)
