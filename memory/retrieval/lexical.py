"""Words against words: BM25 over cells and over wider windows around them, within a view.

Okapi BM25 (Robertson and Zaragoza, 2009). Document counts and lengths are those of the view, so a
score never depends on what comes later.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.index import Floats, Posting
from memory.retrieval.panorama import Panorama, Reach

Counts = NDArray[np.float64]

K1, B = 1.2, 0.6
"""Saturation of repeated words, and how much long cells are held back."""


def spread(counts: NDArray[np.floating], reach: Reach, half: int) -> Floats:
    """Sum ``counts`` over the cells within ``reach``, at most ``half`` steps away, shape (N,).

    At ``half`` 1 a neighbour counts half: it is beside the cell, not in it.
    """
    exact = counts.astype(np.float64)
    return _around(exact, _sums_up_to(exact), reach, half).astype(np.float32)


def _sums_up_to(counts: Counts) -> Counts:
    """What all cells before each have together, and all of them at the end, (N + 1,)."""
    total = np.zeros(len(counts) + 1, dtype=counts.dtype)
    np.cumsum(counts, out=total[1:])
    return total


def _around(counts: Counts, total: Counts, reach: Reach, half: int) -> Counts:
    if half == 0:
        return counts
    around = total[reach.after] - total[reach.before]
    return 0.5 * (around + counts) if half == 1 else around


def norms(view: Panorama, half: int) -> Floats:
    """How far repeated words are held back in the window around every cell, shape (N,)."""
    lengths = spread(view.lengths, view.reach(half), half)
    return np.asarray(K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-6)))


def bm25(view: Panorama, words: Collection[str], halves: Sequence[int]) -> list[Floats]:
    """The BM25 scores of ``words`` in the windows around every cell, (N,) each, at least 0.

    ``halves`` are how many steps the windows reach to both sides.
    """
    scores = [np.zeros(view.cell_count, dtype=np.float32) for _ in halves]
    for word in sorted(set(words)):
        posting = view.posting(word)
        if posting is not None:
            _add_word(view, posting, halves, scores)
    return scores


def _add_word(
    view: Panorama, posting: Posting, halves: Sequence[int], scores: Sequence[Floats]
) -> None:
    counts = np.zeros(view.cell_count, dtype=np.float64)
    counts[posting.cells] = posting.counts
    total = _sums_up_to(counts)
    for half, score in zip(halves, scores, strict=True):
        held = _around(counts, total, view.reach(half), half).astype(np.float32)
        weight = rarity(view.cell_count, int(np.count_nonzero(held)))
        below = held + view.kept(norms, half)
        held *= weight
        held *= K1 + 1
        held /= below
        score += held


def rarity(cells: int, holding: int) -> float:
    """The inverse document frequency of a word that ``holding`` of ``cells`` have."""
    return float(np.log(1 + (cells - holding + 0.5) / (holding + 0.5)))
