"""Keeps one frame of each segment of ten seconds: the sharpest of those about its middle.

A segment that goes on in the next clip has its frame already, so that a question as of a moment
sees the same frames later on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import cv2
import numpy as np

from perception.frame_keeper import FrameToKeep, KeptFrames, State
from perception.quality import laplacian, variance
from strategies.worldmm.settings import SECOND, WorldMemorySettings

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder

MIDDLE_SHARE = 0.6
"""The part of a segment about its middle whose frames are preferred."""
SIDE, QUALITY = 768, 80
"""Pixels of a kept frame's longest side at most, and the quality of its JPEG."""
REASON = "the sharpest of ten seconds"


class SegmentKeeper:
    """Keeps a frame of each segment."""

    version = 1
    every_ms = SECOND

    def __init__(self, settings: WorldMemorySettings) -> None:
        self._segment_ms = settings.segment_ms

    def begin(
        self,
        video: Video,  # noqa: ARG002 - segments are the same of every video
        carried: State,
        encoder: ImageEncoder | None,  # noqa: ARG002 - frames are chosen without vectors
    ) -> SegmentKeeping:
        """Begin, or go on after the last segment that has a frame."""
        last = carried.get("segment")
        return SegmentKeeping(self._segment_ms, last if isinstance(last, int) else -1)


class SegmentKeeping:
    """One clip's work; segments up to ``last`` have their frame."""

    def __init__(self, segment_ms: int, last: int) -> None:
        self._segment_ms, self._last = segment_ms, last

    def clip(
        self,
        clip: Clip,  # noqa: ARG002 - frames have times of the video
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the best frame of each segment that has none; the earlier of two equal ones."""
        best: dict[int, tuple[bool, float, int]] = {}
        for time, image in frames:
            segment = time // self._segment_ms
            if segment > self._last:
                from_middle = time % self._segment_ms - self._segment_ms / 2
                is_about_middle = abs(from_middle) <= MIDDLE_SHARE / 2 * self._segment_ms
                # The variance of the Laplacian of grey, as of eq. 2.
                grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
                found = (is_about_middle, variance(laplacian(grey)), time)
                if segment not in best or found[:2] > best[segment][:2]:
                    best[segment] = found
        self._last = max(best, default=self._last)
        kept = [FrameToKeep(time, REASON, 0, SIDE, QUALITY) for _, _, time in best.values()]
        return KeptFrames(kept, {"segment": self._last})
