"""The nearest lines read again together with the question, by a cross-encoder."""

from __future__ import annotations

import numpy as np

from memory.retrieval.index import Ints, search_text
from memory.retrieval.panorama import Panorama
from memory.retrieval.ranking import Asked, Scores
from models.ports import Reranker

NEAREST = 12
"""Lines read again: enough to hold the one that answers, few enough not to be waited for."""
WEIGHT = 0.5
"""Standard deviations a logit; logits are cut at 8."""
MOST = 8.0


def bonus(view: Panorama, asked: Asked, lines: Ints, reranker: Reranker) -> Scores:
    """What to add to the scores of these lines, shape (L,)."""
    texts = [search_text(view.line(int(line))[1]) for line in lines]
    return WEIGHT * logits(reranker.scores(asked.text, texts))


def logits(scores: np.typing.NDArray[np.float32]) -> Scores:
    """Scores in (0, 1) back on the scale that they were squeezed from, cut at both ends."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(np.clip(np.log(safe / (1 - safe)), -MOST, MOST))
