"""The gates that a frame passes before it is compared with the present moment (VAM, gates).

Each is a test of one frame, or of one against the last that passed. Sharpness is measured at the
frame's own size, the others on a grey plane of a fixed size, which is also what is carried on.
"""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import TYPE_CHECKING

import cv2
import numpy as np
from skimage.metrics import structural_similarity

from perception.jpeg import decode_bgr
from perception.quality import grey_change, sharpness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image
    from strategies.vam.settings import VisualMemorySettings

    Grey = NDArray[np.uint8]

WINDOW = 7
"""Pixels of the side of the windows that structural similarity is the mean of."""


class Gate(StrEnum):
    """A gate, in the order in which frames meet them."""

    BLUR = "blur"
    CHANGE = "change"
    STRUCTURE = "structure"
    HISTOGRAM = "histogram"


class Gates:
    """The gates at work: each frame is compared with the last that passed.

    Args:
        last: the ``last`` of gates that go on; "" at the start.
    """

    def __init__(self, settings: VisualMemorySettings, last: str = "") -> None:
        self._settings = settings
        self._last = decode_plane(last) if last else None

    @property
    def last(self) -> str:
        """Return the plane of the last frame that passed as text; "" before the first."""
        return "" if self._last is None else encode_plane(self._last)

    def stopped_by(self, image: Image) -> Gate | None:
        """Return the gate that drops an H x W x 3 BGR image; None if it passes all."""
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
        if sharpness(grey) < self._settings.least_sharpness:
            return Gate.BLUR
        now = grey_plane(grey, self._settings.plane_side)
        gate = None if self._last is None else unchanged(self._last, now, self._settings)
        if gate is None:
            self._last = now
        return gate


def unchanged(before: Grey, now: Grey, settings: VisualMemorySettings) -> Gate | None:
    """Return the first gate by which a plane is too much like the one before; None if it is not."""
    if grey_change(before, now) < settings.least_change:
        return Gate.CHANGE
    if before.shape != now.shape:
        return None
    if similarity(before, now) >= settings.most_similarity:
        return Gate.STRUCTURE
    if histogram_change(before, now) < settings.least_histogram_change:
        return Gate.HISTOGRAM
    return None


def grey_plane(grey: Grey, side: int) -> Grey:
    """Shrink an H x W plane to ``side`` pixels on its longest side; a smaller one stays as it is.

    The shorter side has at least a window of structural similarity.
    """
    scale = side / max(grey.shape)
    if scale >= 1 and min(grey.shape) >= WINDOW:
        return grey
    height, width = (max(WINDOW, round(length * min(scale, 1))) for length in grey.shape)
    return np.asarray(cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def similarity(before: Grey, now: Grey) -> float:
    """Return the structural similarity of two H x W planes, -1 to 1."""
    return float(structural_similarity(before, now, win_size=WINDOW, data_range=255))


def histogram_change(before: Grey, now: Grey) -> float:
    """Return 1 minus the correlation of the grey histograms of two planes, 0 to 2."""
    one, other = (cv2.calcHist([plane], [0], None, [256], [0, 256]) for plane in (before, now))
    return 1.0 - min(1.0, float(cv2.compareHist(one, other, cv2.HISTCMP_CORREL)))


def encode_plane(plane: Grey) -> str:
    """Return an H x W plane as text, without loss."""
    return base64.b64encode(cv2.imencode(".png", plane)[1].tobytes()).decode("ascii")


def decode_plane(text: str) -> Grey | None:
    """Return the plane of ``encode_plane``; None if an import brought something else."""
    return decode_bgr(base64.b64decode(text), grey=True)
