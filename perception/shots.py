"""Detects shot boundaries (eq. 1).

A camera that turns changes every pixel as much as a cut does, but what lies where stays much the
same for a fifth of a second: then it is no cut, unless everything grows brighter or darker at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

_MIN_LAYOUT_SIMILARITY = 0.7
"""Likeness of layout from which two pictures are of one camera that moves."""
_MAX_MOTION_CHANGE = 2.0
"""A change of more than so many times the threshold is a cut, whatever lies where."""


def number_shots(
    changes: Sequence[float], threshold: float, similarities: Sequence[float] | None = None
) -> list[int]:
    """Return the shot number of each frame, counted from 0 within the clip.

    Args:
        changes: mean absolute grey difference (0-255) of each frame to the one before; the
            first is not looked at.
        threshold: a change above it is a cut.
        similarities: how alike each frame is to the one before in what lies where, -1 to 1.
    """
    views = similarities if similarities is not None else [0.0] * len(changes)
    pairs = zip(changes, views, strict=True)
    cuts = [i > 0 and is_cut(change, view, threshold) for i, (change, view) in enumerate(pairs)]
    return list(accumulate(int(cut) for cut in cuts))


def is_cut(change: float, similarity: float, threshold: float) -> bool:
    """Tell whether there is a cut between two pictures that differ by ``change``."""
    moved = similarity >= _MIN_LAYOUT_SIMILARITY and change <= _MAX_MOTION_CHANGE * threshold
    return change > threshold and not moved
