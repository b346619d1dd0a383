"""How well texts match words: BM25 (Robertson and Zaragoza, 2009), with the defaults of bm25s.

Words are weighed by how rare they are among the given texts only, so that of a view as of a moment
nothing later is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bm25s import BM25
from numpy.typing import NDArray


class WordScores:
    """Scores N texts by search terms."""

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self._count = len(words)
        self._ranking = BM25() if any(words) else None
        if self._ranking is not None:
            self._ranking.index(list(words), show_progress=False)

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the score of every text by search terms, (N,); 0 without one in common."""
        vocabulary = self._ranking.vocab_dict if self._ranking is not None else {}
        known = [word for word in words if word in vocabulary]
        if self._ranking is None or not known:
            return np.zeros(self._count, dtype=np.float32)
        return np.asarray(self._ranking.get_scores(known), dtype=np.float32)
