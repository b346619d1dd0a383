"""Reads text on the keyframes of one clip; repeated text is stored once."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.media import Box, ScreenText

if TYPE_CHECKING:
    from models.ports import Image, ScreenReader, TextLine
    from perception.keyframes import ChosenKeyframe

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
