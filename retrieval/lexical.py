"""Words against words: BM25 over cells and over wider windows around them, within a view.

Okapi BM25 (Robertson and Zaragoza, 2009). Document counts and lengths are those of the view, so a
score never depends on what comes later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.postings import Counts
from retrieval.time_grid import TimeGrid
from retrieval.video_index import Floats, Ints
from retrieval.view_index import ViewIndex

K1, B = 1.2, 0.6
"""Saturation of repeated words, and how much long cells are held back."""


def spread(counts: NDArray[np.floating], grid: TimeGrid, half: int) -> Floats:
    """Sum whole numbers over the cells at most ``half`` steps away, shape (N,).

    At ``half`` 1 a neighbour counts half: it is beside the cell, not in it.
    """
    return np.asarray(grid.of_cells(next(_windows(grid, counts, [half]))[1]))


def _windows(
    grid: TimeGrid, counts: NDArray[np.number], halves: Sequence[int], places: Ints | None = None
) -> Iterator[tuple[Counts, Floats]]:
    """Sums over windows of each width, whole and as they are weighed, at all places (P,)."""
    around = grid.windows(counts, [0, *halves], places)
    own = next(around)
    for half, whole in zip(halves, around, strict=True):
        yield whole, _weighed(own, whole, half)


def _weighed(own: Counts, around: Counts, half: int) -> Floats:
    if half != 1:
        return around.astype(np.float32)
    held = (around + own).astype(np.float32)
    held *= 0.5
    return held


def norms(view: ViewIndex, half: int) -> Floats:
    """How far repeated words are held back in the window around every place of the grid, (P,)."""
    ((_, lengths),) = _windows(view.grid, view.lengths, [half])
    mean = max(float(view.grid.of_cells(lengths).mean()), 1e-6)
    return np.asarray(K1 * (1 - B + B * lengths / mean))


def bm25(view: ViewIndex, words: Collection[str], halves: Sequence[int]) -> Floats:
    """The BM25 scores of ``words`` in the windows around every cell, (W, N), at least 0.

    ``halves`` (W,) are how many steps the windows reach to both sides.
    """
    scores = np.zeros((len(halves), view.cell_count), dtype=np.float32)
    for word in sorted(set(words)):
        own = view.of_term(_of_word, word, tuple(halves))
        if own is not None:
            scores += own
    return scores


def _of_word(view: ViewIndex, word: str, halves: Sequence[int]) -> Floats | None:
    """The scores of one word, (W, N)."""
    posting = view.posting(word)
    if posting is None:
        return None
    scores = np.empty((len(halves), view.cell_count), dtype=np.float32)
    windows = _windows(view.grid, posting.counts, halves, posting.places)
    for half, own, (whole, held) in zip(halves, scores, windows, strict=True):
        below = held + view.kept(norms, half)
        np.divide(held, below, out=below)
        below *= (K1 + 1) * rarity(view.cell_count, view.grid.holding(whole))
        own[:] = view.grid.of_cells(below)
    return scores


def rarity(cells: int, holding: int) -> float:
    """The inverse document frequency of a word that ``holding`` of ``cells`` have."""
    return float(np.log(1 + (cells - holding + 0.5) / (holding + 0.5)))
