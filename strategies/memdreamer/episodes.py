"""Cuts a window of a video into episodes where the topic shifts, by time; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.time import TimeSpan
from memory.writers.tiling import depth_scores

Matrix = NDArray[np.float64]

CONTEXT_MS = 60_000
"""So long before the window's end there is no border yet: too little of what follows is known."""


class QuietMoment(NamedTuple):
    """Where a border may be: before the line that begins at ``at_ms``; the deeper, the likelier."""

    at_ms: int
    depth: float


class Lengths(NamedTuple):
    """The least and the typical most of an episode, in milliseconds."""

    least: int
    most: int


def episode_ends(
    window: TimeSpan,
    starts: Sequence[int],
    vectors: Matrix,
    lengths: Lengths,
    *,
    ended: bool,
) -> list[int]:
    """Return where the complete episodes of a window end.

    Borders are where the topic shifts most, at least ``lengths.least`` apart; an episode of more
    than ``lengths.most`` is split at its deepest gap. What follows the last end is not complete.

    Args:
        window: the window.
        starts: when its lines begin, ascending, in milliseconds.
        vectors: (N, D) unit rows, of the lines.
        lengths: of episodes.
        ended: nothing follows the window, so that its last episode is complete.

    Returns:
        Times in the window in ascending order, at least one; the last is the window's end if
        ``ended``, and where there is no border.
    """
    depth = depth_scores(vectors) if len(vectors) > 1 else np.zeros(0)
    spare = lengths.least if ended else CONTEXT_MS
    latest = window.end_ms - spare
    gaps = [gap for gap in _gaps(starts, depth) if gap.at_ms <= latest]
    cuts = _deep_cuts(window, gaps, depth, lengths.least)
    cuts = _split_long(window, gaps, cuts, lengths, ended=ended)
    return [*cuts, window.end_ms] if ended or not cuts else cuts


def _gaps(starts: Sequence[int], depth: Matrix) -> Iterator[QuietMoment]:
    """Yield the gaps before lines that begin later than those before them."""
    for (before, at_ms), deep in zip(pairwise(starts), depth, strict=True):
        if before < at_ms and deep > 0:
            yield QuietMoment(at_ms, float(deep))


def _deep_cuts(
    window: TimeSpan, gaps: Sequence[QuietMoment], depth: Matrix, least: int
) -> list[int]:
    """Return the gaps of more than the mean depth and half a standard deviation, well apart."""
    threshold = float(depth.mean() + depth.std() / 2) if len(depth) else 0.0
    cuts: list[int] = []
    for gap in sorted(gaps, key=lambda one: (-one.depth, one.at_ms)):
        if gap.depth < threshold:
            break
        apart = all(abs(gap.at_ms - cut) >= least for cut in cuts)
        if apart and gap.at_ms - window.start_ms >= least:
            cuts.append(gap.at_ms)
    return sorted(cuts)


def _split_long(
    window: TimeSpan,
    gaps: Sequence[QuietMoment],
    cuts: Sequence[int],
    lengths: Lengths,
    *,
    ended: bool,
) -> list[int]:
    """Split what is longer than an episode typically is, where there is a gap."""
    last = [window.end_ms] if ended or not cuts else []
    ends: list[int] = []
    begin = window.start_ms
    for end in (*cuts, *last):
        while end - begin > lengths.most:
            until = min(begin + lengths.most, end - lengths.least if end in cuts else end)
            inside = [gap for gap in gaps if begin + lengths.least <= gap.at_ms <= until]
            if not inside:
                break
            begin = max(inside, key=lambda gap: (gap.depth, -gap.at_ms)).at_ms
            ends.append(begin)
        if end in cuts:
            ends.append(end)
            begin = end
    return ends
