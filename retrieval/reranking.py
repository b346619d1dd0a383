"""The nearest lines read again together with the question, by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.ports import Reranker
from retrieval.line_set import Ints, LineSet, Scores
from retrieval.people_in_query import readable
from retrieval.ranking import PreparedQuestion

NEAREST = 12
"""Lines read again: enough to hold the one that answers, few enough not to be waited for."""
ALONE, IN_TALK = 0.5, 0.25
"""Standard deviations a logit; logits are cut at 8."""
MOST = 8.0
WORST = -(ALONE + IN_TALK) * MOST
"""The least that reading can add."""


def bonus(of: LineSet, asked: PreparedQuestion, lines: Ints, reranker: Reranker) -> Scores:
    """What to add to the scores of these lines, shape (L,).

    A line is read alone, since the answer must be in it, and after the line before it, since
    "it was made of iron" does not say what was.
    """
    of.read_lines([*lines.tolist(), *np.maximum(lines - 1, 0).tolist()])
    alone = reranker.scores(asked.text, [passage(of, asked, int(i), 0) for i in lines])
    talk = reranker.scores(asked.text, [passage(of, asked, int(i), 1) for i in lines])
    return ALONE * logits(alone) + IN_TALK * logits(talk)


def passage(of: LineSet, asked: PreparedQuestion, line: int, before: int) -> str:
    """Return a line in words, after up to ``before`` lines of the same video."""
    video, _ = of.line(line)
    names = asked.people.names(video)
    rows = [of.line(number) for number in range(max(0, line - before), line + 1)]
    return " ".join(readable(row, names) for source, row in rows if source == video)


def closest(
    of: LineSet, asked: PreparedQuestion, lines: Sequence[int], reranker: Reranker | None
) -> float:
    """How close the closest of these lines is by reading it alone, in [0, 1]; 0 unread."""
    if reranker is None or not lines:
        return 0.0
    texts = [passage(of, asked, line, 0) for line in lines]
    return float(reranker.scores(asked.text, texts).max())


def logits(scores: np.typing.NDArray[np.float32]) -> Scores:
    """Scores in (0, 1) back on the scale that they were squeezed from, cut at both ends."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(np.clip(np.log(safe / (1 - safe)), -MOST, MOST))
