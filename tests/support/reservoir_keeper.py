"""A keeper of frames that keeps a few of all, each with the same chance, and drops others again.

Those that are still kept a clip later are shrunk further.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from domain.media import Clip, Video
from models.ports import Image, ImageEncoder
from perception.frame_keeper import FrameChange, FrameToKeep, KeptFrames, State

MOST = 3
SIDE, OLD_SIDE = 32, 16


class Reservoir:
    version = 1
    every_ms = 500

    def begin(self, video: Video, carried: State, encoder: ImageEncoder | None) -> Drawing:
        return Drawing(video.id, dict(carried))


class Drawing:
    def __init__(self, video: str, state: dict[str, Any]) -> None:
        self._video = video
        self._seen, self._kept = state.get("seen", 0), list(state.get("kept", []))
        self._old = list(state.get("old", []))

    def clip(self, clip: Clip, frames: Iterator[tuple[int, Image]]) -> KeptFrames:
        before = list(self._kept)
        for time, _ in frames:
            self._seen += 1
            place = random.Random(f"{self._video} {self._seen}").randrange(self._seen)
            if len(self._kept) < MOST:
                self._kept.append(time)
            elif place < MOST:
                self._kept[place] = time
        new = [time for time in self._kept if time not in before]
        stayed = [time for time in before if time in self._kept]
        changed = [time for time in stayed if time not in self._old]
        self._old = stayed
        return KeptFrames(
            [FrameToKeep(time, "drawn", tier=1, side=SIDE) for time in new],
            {"seen": self._seen, "kept": list(self._kept), "old": list(stayed)},
            [time for time in before if time not in self._kept],
            [FrameChange(time, "stayed", tier=2, side=OLD_SIDE) for time in changed],
        )
