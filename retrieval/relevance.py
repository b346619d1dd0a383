"""Absolute closeness of results to a query, in [0, 1].

A ranking always has a best result, even if nothing in memory is relevant. Closeness compares its
cosine with that of unrelated sentences under the same model, and measures how many of the query's
words it contains, weighted by inverse document frequency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.asking import Evidence
from domain.memories import Scope
from domain.moments import Retrieval
from models.ports import Reranker, TextEmbedder, embed_queries
from retrieval.lines import Floats, Ints, Matrix, Scores, dot_products, search_text
from retrieval.terms import terms
from store.queries.candidates import near_lines
from store.queries.conditions import Reader
from store.queries.search import StoredLine, count_lines

DECAY = 5.0
"""Standard deviations below the best score over which closeness falls to 1/e."""

_UNRELATED = (
    "The committee approved next year's budget.",
    "A small dog barks at the garden gate.",
    "Photosynthesis turns light into sugar.",
    "She tightened the screws of the bookshelf.",
    "Their train was two hours late.",
    "Add a pinch of salt to the boiling soup.",
    "The goalkeeper saved a penalty.",
    "He forgot the password of his computer.",
)


@dataclass(frozen=True)
class CosineScale:
    """The scale of an embedding model's cosines: the mean between unrelated sentences."""

    unrelated: float

    def nearness(self, cosine: float) -> float:
        """Scale a cosine to [0, 1]: 0 for unrelated sentences, 1 for equal ones."""
        return float(np.clip((cosine - self.unrelated) / (1 - self.unrelated), 0, 1))


def cosine_scale(text: TextEmbedder) -> CosineScale:
    """Measure the scale of an embedding model; takes a few milliseconds."""
    vectors = text.embed(_UNRELATED)
    cosines = vectors @ vectors.T
    return CosineScale(float(cosines[np.triu_indices(len(cosines), k=1)].mean()))


def coverage(lines: Iterable[StoredLine], weights: Mapping[str, float]) -> float:
    """Return the share of words that lines contain, weighted by ``weights`` (IDF), in [0, 1]."""
    return text_coverage((search_text(line) for line in lines), weights)


def text_coverage(texts: Iterable[str], weights: Mapping[str, float]) -> float:
    """Return the share of words that texts contain, weighted by ``weights`` (IDF), in [0, 1]."""
    present = {word for text in texts for word in terms(text, english=False)}
    total = sum(weights.values())
    return sum(weights[word] for word in weights if word in present) / total if total else 0.0


def closeness(nearness: float, word_coverage: float) -> float:
    """Combine vector nearness and word coverage by a noisy or, in [0, 1]."""
    return 1 - (1 - nearness) * (1 - word_coverage)


def decayed(first_score: float, scores: Sequence[float]) -> list[float]:
    """Return closeness in [0, 1] for falling scores, the first of which has ``first_score``."""
    return [first_score * float(np.exp(-(scores[0] - score) / DECAY)) for score in scores]


def closeness_threshold(candidates: int) -> float:
    """Return the closeness below which the best of so many candidates counts as chance."""
    # Measured on questions about other videos: 0.35 among a hundred lines, 0.5 in a week of them.
    return 0.25 + 0.05 * float(np.log10(max(1, candidates)))


def close_evidence(found: Retrieval) -> tuple[Evidence, ...]:
    """Return the evidence of a search that is close, best first; none where nothing is.

    Where no score reaches the threshold of lines though something is close, the scores are on
    another scale, such as that of an image-text model: all of it counts as close.
    """
    if found.nothing_close:
        return ()
    least = closeness_threshold(len(found.evidence))
    return tuple(piece for piece in found.evidence if piece.score >= least) or found.evidence


# Relevance of every cell of a search: the output of ranking.

NOISE = 1e-5
"""Deviations below this are rounding errors of matrix products and count as 0."""


@dataclass(frozen=True)
class SignalScale:
    """An affine scale of a signal: ``(value - mean) * weight``."""

    mean: float
    weight: float

    def of(self, values: NDArray[np.floating]) -> Scores:
        return np.asarray((values.astype(np.float64) - self.mean) * self.weight)


def signal_scale(values: NDArray[np.floating], weight: float = 1.0) -> SignalScale:
    """Return the scale on which one standard deviation is ``weight``; 0 if values are equal."""
    if not values.size:
        return SignalScale(0.0, 0.0)
    deviation = float(values.std())
    return SignalScale(
        float(values.mean()), 0.0 if deviation < NOISE else weight / (deviation + 1e-6)
    )


def standardise(values: NDArray[np.floating]) -> Scores:
    """Return z-scores over all axes; zeros if all values are equal."""
    return signal_scale(values).of(values)


@dataclass(frozen=True, eq=False)
class Relevance:
    """The relevance of every cell, as a weighted sum of z-scores.

    ``question`` (N,) is relevance to the question alone, ``options`` (O, N) to the question with
    each option; options are chosen by ``support`` (O, N), which adds the people signal. ``lines``
    (1 + 2 O or 1, M) are the cosines of every line with the question, the statements and the
    options (only the question if options are times), ``scales`` those of these three groups.
    ``near`` (N,) is the cosine of each cell's closest line with the question. ``line_support``
    (O, M) is the support by line, if a cell is scored by its best line
    (``retrieval.heuristics.options``).
    """

    question: Scores
    options: Scores
    support: Scores
    lines: Floats
    near: Floats
    scales: tuple[SignalScale, ...]
    line_support: Scores | None = None

    @property
    def cells(self) -> Scores:
        """The relevance of every cell, with the best option if there are any, (N,)."""
        return np.asarray(self.options.max(axis=0)) if len(self.options) else self.question

    def cosine_scores(self, lines: Ints) -> Scores:
        """Return the standardised cosines of lines, summed, (O, L); (1, L) without options."""
        scores = self.scales[0].of(self.lines[:1, lines])
        if len(self.lines) > 1:
            count = (len(self.lines) - 1) // 2
            scores = scores + self.scales[1].of(self.lines[1 : 1 + count, lines])
            scores = scores + self.scales[2].of(self.lines[1 + count :, lines])
        return scores

    def of_options(self, rows: Sequence[int]) -> Relevance:
        """Select some of the options; scores stay comparable with the others'."""
        count = len(self.options)
        if not count or list(rows) == list(range(count)):
            return self
        chosen = list(rows)
        texts = len(self.lines) > 1
        shown = [0, *(1 + i for i in chosen), *(1 + count + i for i in chosen)] if texts else [0]
        return replace(
            self,
            options=self.options[chosen],
            support=self.support[chosen],
            lines=self.lines[shown],
            line_support=None if self.line_support is None else self.line_support[chosen],
        )


# The lines of a view that are close to some words in meaning, each by itself.


def embed_words(text: TextEmbedder, words: str) -> NDArray[np.floating]:
    """Return the unit vector (D,) of some words that are sought."""
    (vector,) = embed_queries(text, [words])
    return np.asarray(vector)


def close_lines(
    database: Reader,
    text: TextEmbedder,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
) -> list[int]:
    """Return the ids of at most ``limit`` lines in view, the closest to a vector (D,) first.

    Lines that are no closer than chance are left out. ``text`` made the vectors of the library.
    """
    found = near_lines(database, scopes, vector, limit)
    least = closeness_threshold(count_lines(database, scopes))
    nearness = cosine_scale(text).nearness
    return [line.id for line in found if nearness(1 - line.distance) >= least]


# Judges the lines of one clip by standing questions, with the closeness that a search measures.


FLOOR = 0.4
"""Closeness from which the reranker is asked about the closest line."""
MAX_RERANKED = 20
"""Most questions a clip that the reranker is asked about, the closest ones first."""


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
    ) -> list[tuple[int, float]]:
        """Return the number of the line closest to each question, and its closeness in [0, 1].

        Args:
            texts: the lines, at least one.
            vectors: theirs, (L, D), of the same encoder.
            thresholds: closeness from which a question is answered: then it is not reranked.
        """
        cosines = dot_products(np.asarray(self._vectors, np.float32), vectors)
        words = [frozenset(terms(text, english=False)) for text in texts]
        found = list[tuple[int, float]]()
        for asked, row in zip(self._words, cosines, strict=True):
            scores = [
                closeness(
                    self._scale.nearness(float(cosine)), len(asked & line) / max(1, len(asked))
                )
                for line, cosine in zip(words, row, strict=True)
            ]
            best = int(np.argmax(scores))
            found.append((best, scores[best]))
        if self._reranker is not None:
            unsure = [n for n, (_, score) in enumerate(found) if FLOOR <= score < thresholds[n]]
            unsure.sort(key=lambda number: -found[number][1])
            for number in unsure[:MAX_RERANKED]:
                line, score = found[number]
                probability = float(
                    self._reranker.scores(self._questions[number], [texts[line]])[0]
                )
                found[number] = (line, max(score, probability))
        return found
