"""Keeps one frame of each segment of ten seconds: the sharpest of those about its middle.

A segment that goes on in the next clip has its frame already, so that a question as of a moment
sees the same frames later on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import cv2
import numpy as np

from perception.frame_keeper import FrameKeeper, FrameToKeep, KeptFrames, State
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


def segment_keeper(settings: WorldMemorySettings) -> FrameKeeper:
    length = settings.segment_ms

    def keep(
        _video: Video,
        carried: State,
        _encoder: ImageEncoder | None,
        _clip: Clip,
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the best frame of each segment that has none; the earlier of two equal ones."""
        known = carried.get("segment")
        last = known if isinstance(known, int) else -1
        best: dict[int, tuple[bool, float, int]] = {}
        for time, image in frames:
            segment = time // length
            if segment > last:
                is_about_middle = abs(time % length - length / 2) <= MIDDLE_SHARE / 2 * length
                # The variance of the Laplacian of grey, as of eq. 2.
                grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
                found = (is_about_middle, variance(laplacian(grey)), time)
                if segment not in best or found[:2] > best[segment][:2]:
                    best[segment] = found
        kept = [FrameToKeep(time, REASON, 0, SIDE, QUALITY) for _, _, time in best.values()]
        return KeptFrames(kept, {"segment": max(best, default=last)})

    return FrameKeeper(version=1, every_ms=SECOND, keep=keep)
