"""Keyframes: a few frames that show a clip (section 3.1).

The best frame of each shot comes first, and the best-scoring shots where there are more shots
than places; then the best of the other frames that are far enough in time from all chosen ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.media import Keyframe
from perception.quality import quality
from perception.shots import number_shots

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image
    from perception.frames import Frame
    from perception.jpeg import Blobs


@dataclass(frozen=True)
class Candidate:
    """A frame that may be chosen: when, in which shot, how good (eq. 2)."""

    time_ms: int
    shot: int
    quality: float


@dataclass(frozen=True, eq=False)
class Chosen:
    """A keyframe with its place among the clip's frames and its pixels, H x W x 3 RGB."""

    index: int
    keyframe: Keyframe
    image: Image


def candidates(frames: Sequence[Frame], settings: WatchSettings) -> list[Candidate]:
    """The frames of one clip as candidates, in order."""
    marks = [frame.marks for frame in frames]
    changes, alike = [one.change for one in marks], [one.alike for one in marks]
    shots = number_shots(changes, settings.shot_threshold, alike)
    return [
        Candidate(frame.time_ms, shot, quality(frame.marks, settings.entropy_weight))
        for frame, shot in zip(frames, shots, strict=True)
    ]


def choose(found: Sequence[Candidate], count: int, gap_ms: int) -> list[int]:
    """Indices of at most ``count`` keyframes, in order of time; the earlier one wins a tie."""
    ranked = sorted(range(len(found)), key=lambda i: (-found[i].quality, i))
    chosen = _first_of_each_shot(ranked, found)[:count]
    for i in ranked:
        if len(chosen) >= count:
            break
        if all(abs(found[i].time_ms - found[j].time_ms) >= gap_ms for j in chosen):
            chosen.append(i)
    return sorted(chosen)


def _first_of_each_shot(ranked: Iterable[int], found: Sequence[Candidate]) -> list[int]:
    best: dict[int, int] = {}
    for i in ranked:
        best.setdefault(found[i].shot, i)
    return list(best.values())


def pick_keyframes(
    frames: Sequence[Frame], found: Sequence[Candidate], settings: WatchSettings, blobs: Blobs
) -> list[Chosen]:
    """Choose the keyframes among ``frames`` and keep their JPEGs in ``blobs``."""
    chosen = choose(found, settings.keyframes, settings.keyframe_gap_ms)
    return [_keep(i, frames[i], found[i], settings, blobs) for i in chosen]


def _keep(
    index: int, frame: Frame, found: Candidate, settings: WatchSettings, blobs: Blobs
) -> Chosen:
    image = frame.image
    keyframe = Keyframe(
        time_ms=frame.time_ms,
        shot=found.shot,
        sharpness=frame.marks.sharpness,
        entropy=frame.marks.entropy,
        quality=found.quality,
        width=image.shape[1],
        height=image.shape[0],
        blob=blobs.add(image, settings.jpeg_quality),
    )
    return Chosen(index, keyframe, image)
