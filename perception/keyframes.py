"""Selects keyframes, a few frames that represent a clip (section 3.1), and reads the text on them.

The best frame of each shot comes first, and the best-scoring shots where there are more shots
than places; then the best of the other frames that are far enough in time from all chosen ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import IntEnum
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.media import Box, Keyframe, ScreenText
from perception.quality import number_shots, quality

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image, ScreenReader, TextLine
    from perception.frames import Frame
    from perception.images import Blobs


CUT_MARGIN_SAMPLES = 2
"""Samples on each side of a cut that are beside it."""


# Frames beside a cut are often half of one shot and half of the other: they are taken only of shots
# that have no others. What is shown for no longer than two samples is a flash, or one step of a
# cross-fade that is seen as several cuts: that comes last of all.
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


_MAX_SIDE = 1_280
_MIN_SCORE = 0.6
_MIN_LETTERS = 2
_MIN_RATIO = 0.9
_BLOCK = 8
"""Pixels of the side of a block in which two pictures are compared: a small letter fills one."""
_NOISE = 8.0
"""By how much of 255 a block may differ, on average, in pictures that show the same."""


def read_screen(chosen: Sequence[ChosenKeyframe], reader: ScreenReader) -> tuple[ScreenText, ...]:
    """Return lines of text, each at the first keyframe it is read on, in reading order.

    A picture that shows what an earlier one showed is not read: it would add nothing.
    """
    texts: list[ScreenText] = []
    read: list[ChosenKeyframe] = []
    # One after the other: what a reader computes with is large, and it has threads of its own.
    for one in chosen:
        if any(_shows_the_same(one.image, other.image) for other in read):
            continue
        read.append(one)
        before = tuple(texts)
        # Boxes are in the keyframe's pixels, whatever size it was read at.
        image = one.image
        scale = max(1.0, max(image.shape[:2]) / _MAX_SIDE)
        shown = image
        if scale != 1.0:
            size = (round(image.shape[1] / scale), round(image.shape[0] / scale))
            shown = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        lines = [
            line
            for line in reader.read(shown)
            if line.score > _MIN_SCORE
            and sum(character.isalnum() for character in line.text) >= _MIN_LETTERS
        ]
        boxes = [_box(line, scale, image) for line in lines]
        time = one.keyframe.time_ms
        texts += [
            ScreenText(time_ms=time, text=line.text, score=line.score, box=box)
            for line, box in zip(lines, boxes, strict=True)
            if box is not None and not any(same_text(line.text, other.text) for other in before)
        ]
    return tuple(texts)


def _shows_the_same(one: Image, other: Image) -> bool:
    """Check whether two RGB pictures differ by no more than coding noise, anywhere."""
    if one.shape != other.shape:
        return False
    height, width = one.shape[:2]
    size = (max(1, width // _BLOCK), max(1, height // _BLOCK))
    differences = cv2.resize(cv2.absdiff(one, other), size, interpolation=cv2.INTER_AREA)
    return float(differences.max()) <= _NOISE


def _box(line: TextLine, scale: float, image: Image) -> Box | None:
    x0, y0, x1, y1 = (round(value * scale) for value in line.box)
    x0, y0 = max(0, x0), max(0, y0)
    x1, y1 = min(image.shape[1], x1), min(image.shape[0], y1)
    return Box(x0=x0, y0=y0, x1=x1, y1=y1) if x1 > x0 and y1 > y0 else None


def same_text(a: str, b: str) -> bool:
    """Tell whether two readings are of one line: equal but for case, punctuation and slips."""
    one, two = sorted((_letters_and_digits(a), _letters_and_digits(b)))
    if one == two:
        return True
    # A slip in a number makes another number.
    if any(c.isdigit() for c in one + two) or min(len(one), len(two)) < 1 / (1 - _MIN_RATIO):
        return False
    return SequenceMatcher(None, one, two, autojunk=False).ratio() >= _MIN_RATIO


def _letters_and_digits(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
