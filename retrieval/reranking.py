"""Reranking of the best lines by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.ports import Reranker
from retrieval.line_set import Ints, LineSet, Scores
from retrieval.people_in_query import text_for_reranker
from retrieval.ranking import PreparedQuestion

RERANKED = 12
"""Number of lines that are reranked: a trade of recall for latency."""
ALONE_WEIGHT, CONTEXT_WEIGHT = 0.5, 0.25
"""Standard deviations per logit: of the line alone, and after the line before it."""
MAX_LOGIT = 8.0
"""Logits are clipped to [-8, 8]."""
MIN_BONUS = -(ALONE_WEIGHT + CONTEXT_WEIGHT) * MAX_LOGIT
"""The minimum of ``reranking_bonus``."""


def reranking_bonus(
    line_set: LineSet, question: PreparedQuestion, lines: Ints, reranker: Reranker
) -> Scores:
    """Return what to add to the scores of lines, shape (L,), in standard deviations.

    A line is scored alone, since it must contain the answer, and after the line before it, which
    may hold the antecedent of its pronouns.
    """
    line_set.read_lines([*lines.tolist(), *np.maximum(lines - 1, 0).tolist()])
    alone = reranker.scores(question.text, [passage(line_set, question, int(i), 0) for i in lines])
    in_context = reranker.scores(
        question.text, [passage(line_set, question, int(i), 1) for i in lines]
    )
    return ALONE_WEIGHT * logits(alone) + CONTEXT_WEIGHT * logits(in_context)


def passage(line_set: LineSet, question: PreparedQuestion, line: int, before: int) -> str:
    """Return the text of a line after up to ``before`` lines of the same video."""
    video, _ = line_set.line(line)
    names = question.people.names(video)
    rows = [line_set.line(number) for number in range(max(0, line - before), line + 1)]
    return " ".join(text_for_reranker(row, names) for source, row in rows if source == video)


def best_probability(
    line_set: LineSet, question: PreparedQuestion, lines: Sequence[int], reranker: Reranker | None
) -> float:
    """Return the reranker's highest probability for these lines, in [0, 1]; 0 without it."""
    if reranker is None or not lines:
        return 0.0
    texts = [passage(line_set, question, line, 0) for line in lines]
    return float(reranker.scores(question.text, texts).max())


def logits(scores: np.typing.NDArray[np.float32]) -> Scores:
    """Return the logits of probabilities in (0, 1), clipped to ``MAX_LOGIT``."""
    safe = np.clip(scores.astype(np.float64), 1e-6, 1 - 1e-6)
    return np.asarray(np.clip(np.log(safe / (1 - safe)), -MAX_LOGIT, MAX_LOGIT))
