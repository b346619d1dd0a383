"""Shots: stretches without a cut (eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def number_shots(changes: Sequence[float], threshold: float) -> list[int]:
    """The shot of each frame, counted from 0 within the clip.

    Args:
        changes: mean absolute grey difference (0-255) of each frame to the one before; the
            first is not looked at.
        threshold: a change above it is a cut.
    """
    cuts = [i > 0 and change > threshold for i, change in enumerate(changes)]
    return list(accumulate(int(cut) for cut in cuts))
