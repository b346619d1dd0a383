"""Splits lines into topics where their vectors change (TextTiling, Hearst 1997); pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

BLOCK_LINES = 8
"""Lines compared on each side of a possible cut."""

EDGE_SHARE = 0.25
"""A cut within this share of a clip's lines from the clip's start or end is moved there."""


def depth_scores(vectors: Matrix) -> Matrix:
    """Return how far the similarity of neighbouring blocks dips at each gap.

    Args:
        vectors: (N, D) unit rows, in order.

    Returns:
        (N - 1,); entry i is the gap before line i + 1. The depth is what the likeness lacks to
        the nearest peak on the left plus what it lacks to the one on the right.
    """
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0)])
    cuts = np.arange(1, len(vectors))
    left = sums[cuts] - sums[np.maximum(cuts - BLOCK_LINES, 0)]
    right = sums[np.minimum(cuts + BLOCK_LINES, len(vectors))] - sums[cuts]
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    similarity = (left * right).sum(axis=1) / np.where(norms > 0, norms, 1.0)
    peaks = _peaks_to_left(similarity) + _peaks_to_left(similarity[::-1])[::-1]
    return np.asarray(np.round(peaks - 2 * similarity, 9)) if len(peaks) else np.zeros(0)


def _peaks_to_left(similarity: Matrix) -> Matrix:
    """Return the peak that is reached from each gap by going up to the left, shape (N - 1,)."""
    peaks = similarity.copy()
    for gap in range(1, len(peaks)):
        if similarity[gap - 1] >= similarity[gap]:
            peaks[gap] = peaks[gap - 1]
    return peaks


@dataclass(frozen=True)
class CutLimits:
    """The fewest and most cuts, and the fewest lines between two cuts."""

    minimum: int
    maximum: int
    min_lines: int


def choose_cuts(depth: Matrix, forced: Sequence[int], limits: CutLimits) -> list[int]:
    """Choose where to cut, the deepest gaps first.

    Gaps are deep enough from the mean depth plus half a standard deviation; shallower ones are cut
    only until there are ``limits.minimum`` cuts.

    Args:
        depth: As returned by ``depth_scores``.
        forced: Line numbers before which there is a cut in any case, most important first.
        limits: Limits on the cuts.

    Returns:
        Line numbers (1 to N - 1) before which a topic begins, in order.
    """
    chosen = list(forced)[: limits.maximum]
    threshold = float(depth.mean() + depth.std() / 2) if len(depth) else 0.0
    order = sorted(range(len(depth)), key=lambda gap: (-depth[gap], gap))
    for gap in order:
        enough = len(chosen) >= limits.minimum and depth[gap] < threshold
        if len(chosen) >= limits.maximum or enough or depth[gap] <= 0:
            break
        ends = (0, len(depth) + 1, *chosen)
        if all(abs(gap + 1 - end) >= limits.min_lines for end in ends):
            chosen.append(gap + 1)
    return sorted(chosen)


def split_at_cuts(
    line_clips: Sequence[int], clips: Sequence[int], cuts: Sequence[int]
) -> list[list[int]]:
    """Return the clips of each topic.

    A clip with a cut inside belongs to both topics; a cut close to a clip's start or end is moved
    there. Topics without a clip of their own are merged with the one before.

    Args:
        line_clips: The clip of every line, in order.
        clips: All clips, in order; those without lines belong to the topic they lie in.
        cuts: Cuts, as of ``choose_cuts``.

    Returns:
        Runs of consecutive clips that cover all of ``clips``; neighbours share at most one.
    """
    runs: list[list[int]] = []
    start = 0
    for cut in cuts:
        last, first = _clips_at_cut(line_clips, clips, cut)
        if last >= start and first > start and first < len(clips):
            runs.append(list(clips[start : last + 1]))
            start = first
    runs.append(list(clips[start:]))
    return _drop_contained_runs(runs)


def _clips_at_cut(line_clips: Sequence[int], clips: Sequence[int], cut: int) -> tuple[int, int]:
    """Places in ``clips`` of the last clip before a cut and the first clip after it."""
    clip = line_clips[cut]
    position = clips.index(clip)
    first_line = line_clips.index(clip)
    share = (cut - first_line) / line_clips.count(clip)
    if share <= EDGE_SHARE:
        return position - 1, position
    return (position, position + 1) if share >= 1 - EDGE_SHARE else (position, position)


def _drop_contained_runs(runs: list[list[int]]) -> list[list[int]]:
    remaining: list[list[int]] = []
    for run in runs:
        if remaining and set(run) <= set(remaining[-1]):
            continue
        if remaining and set(remaining[-1]) <= set(run):
            remaining.pop()
        remaining.append(run)
    return remaining
