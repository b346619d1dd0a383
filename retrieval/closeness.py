"""Absolute closeness of results to a query, in [0, 1].

A ranking always has a best result, even if nothing in memory is relevant. Closeness compares its
cosine with that of unrelated sentences under the same model, and measures how many of the query's
words it contains, weighted by inverse document frequency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from domain.asking import Evidence
from models.ports import TextEmbedder
from retrieval.line_set import search_text
from retrieval.result import Retrieval
from retrieval.terms import terms
from store.queries.search import StoredLine

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
    """Return the closeness below which the best of so many candidates counts as chance.

    Measured on questions about other videos: 0.35 among a hundred lines, 0.5 in a week of them.
    """
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
