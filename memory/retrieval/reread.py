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
    """What to add to the scores of these lines, shape (L,).

    Where there are options, a line is read with those beside it, since the option tells which
    line answers and the rest whether this is the place. Where there are none it is read alone:
    the answer must be in it.
    """
    passages = [passage(view, int(line), 1 if asked.options else 0) for line in lines]
    return WEIGHT * logits(reranker.scores(asked.text, passages))


def passage(view: Panorama, line: int, beside: int) -> str:
    """A line with up to ``beside`` lines of the same video before and after it."""
    video, _ = view.line(line)
    around = range(max(0, line - beside), min(view.line_count, line + beside + 1))
    rows = [view.line(number) for number in around if not view.hidden[number]]
    return " ".join(search_text(row) for source, row in rows if source == video)


def logits(scores: np.typing.NDArray[np.float32]) -> Scores:
    """Scores in (0, 1) back on the scale that they were squeezed from, cut at both ends."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(np.clip(np.log(safe / (1 - safe)), -MOST, MOST))
