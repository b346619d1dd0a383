"""A keeper of frames that keeps a few of all, each with the same chance, and drops others again.

Those that are still kept a clip later are shrunk further.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from domain.media import Clip, Video
from models.ports import Image, ImageEncoder
from perception.frame_keeper import FrameChange, FrameKeeper, FrameToKeep, KeptFrames, State

MOST = 3
SIDE, OLD_SIDE = 32, 16


def keep(
    video: Video,
    carried: State,
    _encoder: ImageEncoder | None,
    _clip: Clip,
    frames: Iterator[tuple[int, Image]],
) -> KeptFrames:
    state = dict[str, Any](carried)
    seen, old = state.get("seen", 0), state.get("old", [])
    before = state.get("kept", [])
    kept = list(before)
    for time, _ in frames:
        seen += 1
        place = random.Random(f"{video.id} {seen}").randrange(seen)
        if len(kept) < MOST:
            kept.append(time)
        elif place < MOST:
            kept[place] = time
    stayed = [time for time in before if time in kept]
    return KeptFrames(
        [FrameToKeep(time, "drawn", tier=1, side=SIDE) for time in kept if time not in before],
        {"seen": seen, "kept": kept, "old": stayed},
        [time for time in before if time not in kept],
        [FrameChange(time, "stayed", tier=2, side=OLD_SIDE) for time in stayed if time not in old],
    )


RESERVOIR = FrameKeeper(version=1, every_ms=500, keep=keep)
