"""Words against words: BM25 over cells and over wider windows around them, within a view.

Okapi BM25 (Robertson and Zaragoza, 2009). Document counts and lengths are those of the view, so a
score never depends on what comes later.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.index import Floats, Ints
from memory.retrieval.panorama import Panorama, Reach

K1, B = 1.2, 0.6
"""Saturation of repeated words, and how much long cells are held back."""


def spread(counts: Floats, reach: Reach, half: int) -> Floats:
    """Sum ``counts`` over the cells within ``reach``, at most ``half`` steps away, shape (N,).

    At ``half`` 1 a neighbour counts half: it is beside the cell, not in it.
    """
    if half == 0:
        return counts
    total = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    around = total[reach.after] - total[reach.before]
    return np.asarray(0.5 * (around + counts) if half == 1 else around, dtype=np.float32)


def bm25(view: Panorama, words: Collection[str], half: int = 0) -> Floats:
    """The BM25 score of ``words`` in the window around every cell, shape (N,), at least 0."""
    lengths = spread(view.lengths, view.reach(half), half)
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-6))
    score = np.zeros(view.cell_count, dtype=np.float32)
    for word in sorted(set(words)):
        posting = view.posting(word)
        if posting is not None:
            score += _word_score(view, posting.cells, posting.counts, half, norm)
    return score


def _word_score(
    view: Panorama, cells: Ints, counts: Floats, half: int, norm: NDArray[np.floating]
) -> Floats:
    held = np.zeros(view.cell_count, dtype=np.float32)
    held[cells] = counts
    held = spread(held, view.reach(half), half)
    weight = rarity(view.cell_count, int((held > 0).sum()))
    return np.asarray(weight * held * (K1 + 1) / (held + norm), dtype=np.float32)


def rarity(cells: int, holding: int) -> float:
    """The inverse document frequency of a word that ``holding`` of ``cells`` have."""
    return float(np.log(1 + (cells - holding + 0.5) / (holding + 0.5)))
