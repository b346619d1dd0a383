"""Detects shot boundaries (eq. 1).

A camera that turns changes every pixel as much as a cut does, but what lies where stays much the
same for a fifth of a second: then it is no cut, unless everything grows brighter or darker at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np
from av.video.reformatter import ColorRange, VideoReformatter

from perception.frames import Frame, FrameMetrics, Upright, is_hdr, shrink

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.settings import WatchSettings

    Grey = NDArray[np.uint8]

_MIN_LAYOUT_SIMILARITY = 0.7
"""Likeness of layout from which two pictures are of one camera that moves."""
_MAX_MOTION_CHANGE = 2.0
"""A change of more than so many times the threshold is a cut, whatever lies where."""


def number_shots(
    changes: Sequence[float], threshold: float, similarities: Sequence[float] | None = None
) -> list[int]:
    """Return the shot number of each frame, counted from 0 within the clip.

    Args:
        changes: mean absolute grey difference (0-255) of each frame to the one before; the
            first is not looked at.
        threshold: a change above it is a cut.
        similarities: how alike each frame is to the one before in what lies where, -1 to 1.
    """
    views = similarities if similarities is not None else [0.0] * len(changes)
    pairs = zip(changes, views, strict=True)
    cuts = [i > 0 and is_cut(change, view, threshold) for i, (change, view) in enumerate(pairs)]
    return list(accumulate(int(cut) for cut in cuts))


def is_cut(change: float, similarity: float, threshold: float) -> bool:
    """Tell whether there is a cut between two pictures that differ by ``change``."""
    moved = similarity >= _MIN_LAYOUT_SIMILARITY and change <= _MAX_MOTION_CHANGE * threshold
    return change > threshold and not moved


# Measures the quality of a frame (eq. 2) and its change from the previous one (eq. 1).
#
# Most of it needs no picture in full colour. Sharpness is that of the luma plane as it was decoded;
# hues and changes, which hardly depend on how many pixels are looked at, are those of every n-th
# row and column. A change that may be a cut is measured anew on both whole pictures, as OpenCV
# would read them.

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
        # Tell whether the first plane is luma of 8 bits, from top to bottom.
        name = picture.format.name
        eight_bits = picture.format.components[0].bits == 8
        begins_with_luma = (
            name.startswith(_PLANAR) and eight_bits and picture.planes[0].line_size > 0
        )
        stored = picture if begins_with_luma else picture.reformat(format="yuv420p")
        plane, shape = stored.planes[0], (stored.height, stored.width)
        luma = np.ndarray(shape, np.uint8, memoryview(plane), strides=(plane.line_size, 1))
        self._laplacian = laplacian(luma, self._laplacian)
        # Its mean is next to nothing: inside a picture the differences add up to none.
        mean_square = cv2.norm(self._laplacian, cv2.NORM_L2SQR) / self._laplacian.size
        full = stored.color_range == ColorRange.JPEG or stored.format.name.startswith("yuvj")
        return FrameMetrics(
            change,
            mean_square * (1.0 if full else 255 / _LIMITED_LUMA) ** 2,
            hue_entropy(bgr, self._bins),
            similarity,
        )


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
    change, layout = _compare_grey(before.sampled_grey, now.sampled_grey, threshold)
    # Whether a cut could come or go by what the sampled change and layout may be off.
    most = is_cut(change * (1 + _CHANGE_ERROR), layout - _SIMILARITY_ERROR, threshold)
    least = is_cut(change * (1 - _CHANGE_ERROR), layout + _SIMILARITY_ERROR, threshold)
    if most == least:
        return change, layout
    return _compare_grey(before.whole_grey, now.whole_grey, threshold)


def _compare_grey(before: Grey, now: Grey, threshold: float) -> tuple[float, float]:
    change = grey_change(before, now)
    possible = change * (1 + _CHANGE_ERROR) > threshold
    return change, layout_similarity(before, now) if possible else 0.0


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


# Measures sampled pictures and shrinks them to frames, in a thread of its own.

_MAX_PENDING = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


class FrameMeasurer:
    """Measures and shrinks pictures in order, each compared with the previous one.

    That goes on in a thread of its own, while the caller decodes the next ones.
    """

    def __init__(self, upright: Upright, settings: WatchSettings) -> None:
        self._upright, self._height = upright, settings.frame_height
        self._meter = QualityMeter(settings)
        self._pending: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure")

    def add(self, picture: av.VideoFrame, time_ms: int) -> None:
        """Add the next picture of the clip; wait while too many are unmeasured."""
        self._pending.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._pending) > _MAX_PENDING:
            self._pending[-1 - _MAX_PENDING].result()

    def collect(self) -> list[Frame]:
        """Return all frames added so far; the next picture starts a clip."""
        frames = [frame.result() for frame in self._pending]
        self._pending.clear()
        self._meter.reset()
        return frames

    def close(self) -> None:
        """Stop the thread after the picture it is measuring."""
        self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        shown = shrink(picture, self._upright, self._height)
        metrics = self._meter.measure(shown if is_hdr(picture) else picture)
        return Frame(time_ms, metrics, shown, self._upright)
