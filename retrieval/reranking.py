"""The nearest lines read again together with the question, by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.ports import Reranker
from retrieval.people_in_query import readable
from retrieval.ranking import PreparedQuestion
from retrieval.relevance import Scores
from retrieval.video_index import Ints
from retrieval.view_index import ViewIndex

NEAREST = 12
"""Lines read again: enough to hold the one that answers, few enough not to be waited for."""
ALONE, IN_TALK = 0.5, 0.25
"""Standard deviations a logit; logits are cut at 8."""
MOST = 8.0
WORST = -(ALONE + IN_TALK) * MOST
"""The least that reading can add."""


def bonus(view: ViewIndex, asked: PreparedQuestion, lines: Ints, reranker: Reranker) -> Scores:
    """What to add to the scores of these lines, shape (L,).

    A line is read alone, since the answer must be in it, and after the line before it, since
    "it was made of iron" does not say what was.
    """
    alone = reranker.scores(asked.text, [passage(view, asked, int(i), 0) for i in lines])
    talk = reranker.scores(asked.text, [passage(view, asked, int(i), 1) for i in lines])
    return ALONE * logits(alone) + IN_TALK * logits(talk)


def passage(view: ViewIndex, asked: PreparedQuestion, line: int, before: int) -> str:
    """A line in words, after up to ``before`` lines in force of the same video."""
    video, _ = view.line(line)
    names = asked.cast.names(video)
    numbers = range(max(0, line - before), line + 1)
    rows = [view.line(number) for number in numbers if not view.hidden[number]]
    return " ".join(readable(row, names) for source, row in rows if source == video)


def closest(
    view: ViewIndex, asked: PreparedQuestion, lines: Sequence[int], reranker: Reranker | None
) -> float:
    """How close the closest of these lines is by reading it alone, in [0, 1]; 0 unread."""
    if reranker is None or not lines:
        return 0.0
    texts = [passage(view, asked, line, 0) for line in lines]
    return float(reranker.scores(asked.text, texts).max())


def logits(scores: np.typing.NDArray[np.float32]) -> Scores:
    """Scores in (0, 1) back on the scale that they were squeezed from, cut at both ends."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(np.clip(np.log(safe / (1 - safe)), -MOST, MOST))
