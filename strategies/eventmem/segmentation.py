"""Events by grey histograms: a frame unlike the present event's mean begins the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.base import Frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image
    from strategies.eventmem.settings import EventMemorySettings

BINS = 256


class SegmentationState(Frozen):
    """What is carried on: frames of the present event, and the sum of their histograms."""

    frames: int = 0
    histogram: tuple[float, ...] = ()


class Segmentation:
    """Says of each frame whether it begins an event, strictly in order of time."""

    def __init__(
        self, settings: EventMemorySettings, state: SegmentationState | None = None
    ) -> None:
        known = state or SegmentationState()
        self._settings = settings
        self._frames = known.frames
        self._sum = np.array(known.histogram or [0.0] * BINS, np.float64)

    @property
    def state(self) -> SegmentationState:
        """Return what is carried on."""
        return SegmentationState(frames=self._frames, histogram=tuple(self._sum.tolist()))

    def begins_event(self, image: Image) -> bool:
        """Add the next frame, H x W x 3 BGR; return whether it begins an event."""
        shares = grey_histogram(image)
        if begins := self._is_other(shares):
            self._frames, self._sum = 0, np.zeros(BINS)
        self._frames += 1
        self._sum += shares
        return begins

    def _is_other(self, shares: NDArray[np.float64]) -> bool:
        if not self._frames:
            return True
        if self._frames <= self._settings.least_frames:
            return False
        return correlation(shares, self._sum / self._frames) < self._settings.same_event


def grey_histogram(image: Image) -> NDArray[np.float64]:
    """Return the shares of grey values in an H x W x 3 BGR image: shape (BINS,), sum 1."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    counts = cv2.calcHist([grey], [0], None, [BINS], [0, 256]).ravel().astype(np.float64)
    return np.asarray(counts / grey.size, np.float64)


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, -1 to 1; where one is constant, 1 if both are, else 0."""
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    if size == 0:
        return float(not a.any() and not b.any())
    return float(a @ b) / size
