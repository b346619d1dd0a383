"""Selects keyframes: a few frames that represent a clip (section 3.1).

The best frame of each shot comes first, and the best-scoring shots where there are more shots
than places; then the best of the other frames that are far enough in time from all chosen ones.

Frames beside a cut are often half of one shot and half of the other. They are taken only of shots
that have no others. What is shown for no longer than two samples is a flash, or one step of a
cross-fade that is seen as several cuts: that comes last of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from domain.media import Keyframe
from perception.quality import number_shots, quality

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image
    from perception.frames import Frame
    from perception.jpeg import Blobs


CUT_MARGIN_SAMPLES = 2
"""Samples on each side of a cut that are beside it."""


class ShotPosition(IntEnum):
    """A frame's position in its shot; lower values are chosen first."""

    CLEAR = 0
    NEAR_CUT = 1
    SHORT_SHOT = 2
    """All of the shot is shown for at most so long as one side of a cut lasts."""


@dataclass(frozen=True)
class Candidate:
    """A frame that may be chosen: time, shot, quality (eq. 2) and position in its shot."""

    time_ms: int
    shot: int
    quality: float
    position: ShotPosition = ShotPosition.CLEAR


@dataclass(frozen=True, eq=False)
class ChosenKeyframe:
    """A keyframe with its index among the clip's frames and its pixels, H x W x 3 RGB."""

    index: int
    keyframe: Keyframe
    image: Image


def keyframe_candidates(
    frames: Sequence[Frame], settings: WatchSettings, end_ms: int | None = None
) -> list[Candidate]:
    """Return a clip's frames as candidates, in order; ``end_ms`` is when the last one ends."""
    changes = [frame.metrics.change for frame in frames]
    similarities = [frame.metrics.layout_similarity for frame in frames]
    shots = number_shots(changes, settings.shot_threshold, similarities)
    step = 1000 / settings.sample_fps
    positions = shot_positions([frame.time_ms for frame in frames], shots, step, end_ms)
    return [
        Candidate(frame.time_ms, shot, quality(frame.metrics, settings.entropy_weight), position)
        for frame, shot, position in zip(frames, shots, positions, strict=True)
    ]


def shot_positions(
    times: Sequence[int], shots: Sequence[int], step_ms: float, end_ms: int | None = None
) -> list[ShotPosition]:
    """Return the position of each frame in its shot.

    Args:
        times: when each frame appeared, in order.
        step_ms: from one sample to the next. A picture that stands still comes only once.
        end_ms: when the last shot ends; None: a sample after its last frame.
    """
    if not times:
        return []
    cuts = [time for time, (one, two) in zip(times[1:], pairwise(shots), strict=True) if one != two]
    end = times[-1] + step_ms if end_ms is None else end_ms
    spans = list(pairwise([times[0], *cuts, end]))
    positions, margin_ms = list[ShotPosition](), CUT_MARGIN_SAMPLES * step_ms
    for time, shot in zip(times, shots, strict=True):
        number = shot - shots[0]
        start, end = spans[number]
        # A clip's own edges are not cuts. Instants are whole milliseconds: two of them may be
        # nearly one more or less apart than steps.
        after = number > 0 and time - start < margin_ms - 1
        before = number < len(spans) - 1 and end - time <= margin_ms + 1
        if end - start <= margin_ms + 1:
            positions.append(ShotPosition.SHORT_SHOT)
        else:
            positions.append(ShotPosition.NEAR_CUT if after or before else ShotPosition.CLEAR)
    return positions


def choose_keyframes(candidates: Sequence[Candidate], count: int, gap_ms: int) -> list[int]:
    """Return indices of at most ``count`` keyframes, in order of time; the earlier wins a tie."""
    ranked = sorted(range(len(candidates)), key=lambda i: (-candidates[i].quality, i))
    best: dict[int, int] = {}
    for i in sorted(ranked, key=lambda i: candidates[i].position):
        best.setdefault(candidates[i].shot, i)
    best_per_shot = list(best.values())
    chosen = [i for i in best_per_shot if candidates[i].position < ShotPosition.SHORT_SHOT][:count]
    clear = (i for i in ranked if candidates[i].position is ShotPosition.CLEAR)
    short = (i for i in best_per_shot if candidates[i].position is ShotPosition.SHORT_SHOT)
    for i in chain(clear, short):
        if len(chosen) >= count:
            break
        if all(abs(candidates[i].time_ms - candidates[j].time_ms) >= gap_ms for j in chosen):
            chosen.append(i)
    return sorted(chosen)


def pick_keyframes(
    frames: Sequence[Frame], candidates: Sequence[Candidate], settings: WatchSettings, blobs: Blobs
) -> list[ChosenKeyframe]:
    """Choose the keyframes among ``frames`` and store their JPEGs in ``blobs``."""
    chosen = choose_keyframes(candidates, settings.keyframes, settings.keyframe_gap_ms)
    picked = list[ChosenKeyframe]()
    for index in chosen:
        frame, image = frames[index], frames[index].image
        keyframe = Keyframe(
            time_ms=frame.time_ms,
            shot=candidates[index].shot,
            sharpness=frame.metrics.sharpness,
            entropy=frame.metrics.entropy,
            quality=candidates[index].quality,
            width=image.shape[1],
            height=image.shape[0],
            blob=blobs.add(image, settings.jpeg_quality),
        )
        picked.append(ChosenKeyframe(index, keyframe, image))
    return picked
