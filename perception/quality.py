"""Measures the quality of a frame (eq. 2) and its change from the previous one (eq. 1).

Most of it needs no picture in full colour. Sharpness is that of the luma plane as it was decoded;
hues and changes, which hardly depend on how many pixels are looked at, are those of every n-th row
and column. A change that may be a cut is measured anew on both whole pictures, as OpenCV would
read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np
from av.video.reformatter import ColorRange, VideoReformatter

from perception.frames import FrameMetrics
from perception.shots import is_cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.settings import WatchSettings

    Grey = NDArray[np.uint8]

_SAMPLED_SIDE = 90
"""Pixels of the shorter side, about, of which hues and changes are measured."""
_CHANGE_ERROR = 0.1
"""By how much of itself a sampled change near the threshold may be wrong; it was up to 0.06."""
_SIMILARITY_ERROR = 0.04
"""By how much the likeness of sampled pictures may be wrong; it was up to 0.02."""
_HUES = 180
_LAYOUT_SIZE = (64, 36)
"""Size at which two pictures are compared in what lies where."""
_PLANAR = ("yuv4", "yuvj4", "nv12", "nv21")
"""How the names of formats begin whose first plane is luma; of 8 bits, if nothing follows."""
_LIMITED_LUMA = 219
"""Steps from black to white where luma has its usual range of 16 to 235."""


@dataclass(frozen=True, eq=False)
class MeasuredPicture:
    """A decoded picture with the grey of its sampled pixels."""

    picture: av.VideoFrame
    sampled_grey: Grey

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height of the whole picture."""
        return self.picture.width, self.picture.height

    @cached_property
    def whole_grey(self) -> Grey:
        """The grey of the whole picture, H x W; the next one may be compared with it too."""
        return grey_of(bgr_pixels(self.picture.reformat(format="bgr24", threads=1)))


class QualityMeter:
    """Measures frame after frame, each against the previous one."""

    def __init__(self, settings: WatchSettings) -> None:
        self._bins, self._threshold = settings.hue_bins, settings.shot_threshold
        self._last: MeasuredPicture | None = None
        # Kept, since it is set up for one size of picture and then used again and again. So is the
        # room for edges: a large array takes longer to get than to fill.
        self._reformatter = VideoReformatter()
        self._laplacian: NDArray[np.int16] | None = None

    def reset(self) -> None:
        """Start anew: the next frame is the first."""
        self._last = None

    def measure(self, picture: av.VideoFrame) -> FrameMetrics:
        """Measure ``picture``; its ``change`` is against the picture measured before."""
        # Every n-th pixel as H x W x 3 BGR: about 90 on the shorter side.
        step = max(1, min(picture.width, picture.height) // _SAMPLED_SIDE)
        sampled = self._reformatter.reformat(
            picture,
            picture.width // step,
            picture.height // step,
            "bgr24",
            interpolation="POINT",
            threads=1,
        )
        bgr = bgr_pixels(sampled)
        before, self._last = self._last, MeasuredPicture(picture, grey_of(bgr))
        change, similarity = (
            (0.0, 0.0) if before is None else compare(before, self._last, self._threshold)
        )
        return FrameMetrics(
            change, self._sharpness(picture), hue_entropy(bgr, self._bins), similarity
        )

    def _sharpness(self, picture: av.VideoFrame) -> float:
        """Return the variance of the Laplacian of luma, as if it ranged from 0 to 255."""
        stored = picture if _begins_with_luma(picture) else picture.reformat(format="yuv420p")
        self._laplacian = laplacian(luma_plane(stored), self._laplacian)
        # Its mean is next to nothing: inside a picture the differences add up to none.
        mean_square = cv2.norm(self._laplacian, cv2.NORM_L2SQR) / self._laplacian.size
        full = stored.color_range == ColorRange.JPEG or stored.format.name.startswith("yuvj")
        return mean_square * (1.0 if full else 255 / _LIMITED_LUMA) ** 2


def _begins_with_luma(picture: av.VideoFrame) -> bool:
    """Tell whether the first plane is luma of 8 bits, from top to bottom."""
    name = picture.format.name
    eight_bits = picture.format.components[0].bits == 8
    return name.startswith(_PLANAR) and eight_bits and picture.planes[0].line_size > 0


def luma_plane(picture: av.VideoFrame) -> Grey:
    """Return the first plane of a picture, H x W, without a copy."""
    plane = picture.planes[0]
    shape = (picture.height, picture.width)
    return np.ndarray(shape, np.uint8, memoryview(plane), strides=(plane.line_size, 1))


def bgr_pixels(picture: av.VideoFrame) -> NDArray[np.uint8]:
    """Return the H x W x 3 pixels of a packed picture without a copy."""
    plane = picture.planes[0]
    shape = (picture.height, picture.width, 3)
    return np.ndarray(shape, np.uint8, memoryview(plane), strides=(plane.line_size, 3, 1))


def grey_of(bgr: NDArray[np.uint8]) -> Grey:
    """Return the grey of an H x W x 3 image."""
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY), np.uint8)


def compare(before: MeasuredPicture, now: MeasuredPicture, threshold: float) -> tuple[float, float]:
    """Return change and layout similarity of two pictures: exact ones if there may be a cut."""
    if before.size != now.size:
        return 255.0, 0.0
    sampled = _compare_grey(before.sampled_grey, now.sampled_grey, threshold)
    if not _may_be_wrong(*sampled, threshold):
        return sampled
    return _compare_grey(before.whole_grey, now.whole_grey, threshold)


def _compare_grey(before: Grey, now: Grey, threshold: float) -> tuple[float, float]:
    change = grey_change(before, now)
    possible = change * (1 + _CHANGE_ERROR) > threshold
    return change, layout_similarity(before, now) if possible else 0.0


def _may_be_wrong(change: float, similarity: float, threshold: float) -> bool:
    """Tell whether a cut could come or go by what a sampled change and similarity may be off."""
    most = is_cut(change * (1 + _CHANGE_ERROR), similarity - _SIMILARITY_ERROR, threshold)
    least = is_cut(change * (1 - _CHANGE_ERROR), similarity + _SIMILARITY_ERROR, threshold)
    return most != least


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


def hue_entropy(bgr: NDArray[np.uint8], bins: int) -> float:
    """Return the entropy, 0 to log2(bins) bits, of the hue histogram of an H x W x 3 image."""
    hue = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
    counts = cv2.calcHist([hue], [0], None, [bins], [0, _HUES]).ravel()
    shares = counts[counts > 0] / hue[..., 0].size
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def quality(metrics: FrameMetrics, entropy_weight: float) -> float:
    """Return the quality of a frame (eq. 2): sharpness x (1 + weight x entropy)."""
    return metrics.sharpness * (1.0 + entropy_weight * metrics.entropy)
