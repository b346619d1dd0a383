"""Judges the lines of one clip by standing questions, with the closeness that a search measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.ports import Reranker, TextEmbedder, embed_queries
from retrieval.lines import Matrix, dot_products
from retrieval.relevance import closeness, cosine_scale
from retrieval.terms import terms

FLOOR = 0.4
"""Closeness from which the reranker is asked about the closest line."""
MAX_RERANKED = 20
"""Most questions a clip that the reranker is asked about, the closest ones first."""


@dataclass(frozen=True)
class ClosestLine:
    """The number of the line closest to a question, and its closeness in [0, 1]."""

    line: int
    score: float


class StandingQuestions:
    """Questions with their vectors, which are made once.

    Args:
        text: embeds them, and the lines.
        reranker: reads the closest line again where it is not close enough; None: nothing does.
    """

    def __init__(
        self, questions: Sequence[str], text: TextEmbedder, reranker: Reranker | None
    ) -> None:
        self._questions, self._text, self._reranker = tuple(questions), text, reranker
        self._scale = cosine_scale(text)
        self._vectors = embed_queries(text, questions) if questions else np.zeros((0, 0))
        self._words = [frozenset(terms(question)) for question in questions]

    def closest_lines(
        self, texts: Sequence[str], vectors: Matrix, thresholds: Sequence[float]
    ) -> list[ClosestLine]:
        """Return the closest line of each question.

        Args:
            texts: the lines, at least one.
            vectors: theirs, (L, D), of the same encoder.
            thresholds: closeness from which a question is answered: then it is not reranked.
        """
        cosines = dot_products(np.asarray(self._vectors, np.float32), vectors)
        words = [frozenset(terms(text, english=False)) for text in texts]
        found = [self._closest(number, words, row) for number, row in enumerate(cosines)]
        if self._reranker is not None:
            unsure = [n for n, one in enumerate(found) if FLOOR <= one.score < thresholds[n]]
            unsure.sort(key=lambda number: -found[number].score)
            for number in unsure[:MAX_RERANKED]:
                line = found[number].line
                probability = float(
                    self._reranker.scores(self._questions[number], [texts[line]])[0]
                )
                found[number] = ClosestLine(line, max(found[number].score, probability))
        return found

    def _closest(
        self, number: int, lines: Sequence[frozenset[str]], cosines: Matrix
    ) -> ClosestLine:
        asked = self._words[number]
        scores = [
            closeness(self._scale.nearness(float(cosine)), len(asked & words) / max(1, len(asked)))
            for words, cosine in zip(lines, cosines, strict=True)
        ]
        best = int(np.argmax(scores))
        return ClosestLine(best, scores[best])
