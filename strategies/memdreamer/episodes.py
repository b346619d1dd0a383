"""Cuts a window of a video into episodes where the topic shifts, by time; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.time import TimeSpan

Matrix = NDArray[np.float64]
Times = NDArray[np.int64]

CONTEXT_MS = 60_000
"""So long before the window's end there is no border yet: too little of what follows is known."""

MOST_GAPS = 1_000
"""Of more gaps between lines only some are looked at: memory and time grow with their square."""

_DIGITS = 6
"""The cohesion of an episode is rounded, so that equal texts are cut alike on every processor."""


class Lengths(NamedTuple):
    """The least and the typical most of an episode, in milliseconds."""

    least: int
    most: int


class _Places(NamedTuple):
    """Where episodes may begin and end: (P,) times in milliseconds, (P,) numbers of lines before.

    The first is the window's start, the last its end.
    """

    times: Times
    lines: Times


def episode_ends(
    window: TimeSpan,
    starts: Sequence[int],
    vectors: Matrix,
    lengths: Lengths,
    *,
    ended: bool,
) -> list[int]:
    """Return where the complete episodes of a window end.

    The window is cut so that the lines of each part are most alike, by dynamic programming. One
    more border has to explain more of the lines than the Bayesian information criterion asks of
    it, so that their noise is not cut. Parts are of ``lengths.least`` at least and, where there is
    a gap between lines, of ``lengths.most`` at most. What follows the last end is not complete.

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
    places = _places(window, starts, lengths.least if ended else CONTEXT_MS, lengths.least)
    if len(places.times) <= 2:
        return [window.end_ms]
    spans = places.times[None] - places.times[:, None]
    scores = _scores(vectors, places.lines) - len(vectors) * np.maximum(0, spans - lengths.most)
    allowed = spans >= lengths.least
    allowed[:, -1] = spans[:, -1] >= (lengths.least if ended else CONTEXT_MS)
    allowed[0, -1] = True
    ends = [int(places.times[place]) for place in _best_ends(np.where(allowed, scores, -np.inf))]
    return ends if ended or len(ends) == 1 else ends[:-1]


def _places(window: TimeSpan, starts: Sequence[int], spare: int, least: int) -> _Places:
    """Return the window's bounds and the gaps before lines that begin later than those before."""
    first, last = window.start_ms + least, window.end_ms - spare
    gaps = [
        line
        for line in range(1, len(starts))
        if starts[line - 1] < starts[line] and first <= starts[line] <= last
    ]
    gaps = gaps[:: len(gaps) // (MOST_GAPS + 1) + 1]
    times = [window.start_ms, *(starts[line] for line in gaps), window.end_ms]
    return _Places(np.asarray(times), np.asarray([0, *gaps, len(starts)]))


def _scores(vectors: Matrix, lines: Times) -> Matrix:
    """Return the cohesion of the lines between each two places, less the cost of a part.

    The cohesion is by how much the squared distances of lines to their mean are smaller within a
    part than within the window. The cost is the logarithm of the number of lines times the variance
    of lines about one mean (the BIC of a change of the mean).

    Returns:
        (P, P); entry (i, j) is the part from place i to place j.
    """
    shifts = vectors - vectors.mean(axis=0)
    norms = np.linalg.norm(shifts, axis=1, keepdims=True)
    rows = shifts / np.where(norms > 0, norms, 1.0)
    sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])[lines]
    # Not a matrix product: the threads of BLAS would spin for longer than this takes.
    products = np.vecdot(sums[:, None], sums)
    squares = np.diag(products)
    counts = np.maximum(1, lines[None] - lines[:, None])
    cohesion = np.round((squares[:, None] + squares - 2 * products) / counts, _DIGITS)
    left = (len(rows) - cohesion[0, -1]) / (len(rows) - 1)
    return np.asarray(cohesion - np.log(len(rows)) * left)


def _best_ends(scores: Matrix) -> list[int]:
    """Return the places where the parts of the best partition end; the last is the last place.

    Args:
        scores: (P, P), of the part from place i to place j; minus infinity where none may be.
    """
    best = np.full(len(scores), -np.inf)
    best[0] = 0
    before = np.zeros(len(scores), dtype=int)
    for place in range(1, len(scores)):
        totals = best[:place] + scores[:place, place]
        before[place] = np.argmax(totals)
        best[place] = totals[before[place]]
    ends = [len(scores) - 1]
    while before[ends[-1]]:
        ends.append(int(before[ends[-1]]))
    return ends[::-1]
