"""How close what was found is to what was asked, in [0, 1]: when is the best still nothing?

A ranking always has a first. Closeness is absolute: how far a cosine stands above that of
unrelated sentences under the same model, and how much of the query's rarer words is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.ports import TextEmbedder
from retrieval.line_set import search_text
from retrieval.terms import terms
from store.queries.search import StoredLine

FADE = 5.0
"""Standard deviations behind the best over which a score falls to 1/e of it."""

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
    """What cosines mean under one embedding: the mean between unrelated sentences."""

    unrelated: float

    def nearness(self, cosine: float) -> float:
        """0 at the cosine of unrelated sentences, 1 at equality."""
        return float(np.clip((cosine - self.unrelated) / (1 - self.unrelated), 0, 1))


def cosine_scale(text: TextEmbedder) -> CosineScale:
    """Measure an embedding model; a few milliseconds."""
    vectors = text.embed(_UNRELATED)
    cosines = vectors @ vectors.T
    return CosineScale(float(cosines[np.triu_indices(len(cosines), k=1)].mean()))


def coverage(lines: Iterable[StoredLine], weights: Mapping[str, float]) -> float:
    """Return the share of words, by their ``weights`` (rarity), that lines hold, in [0, 1]."""
    held = {word for line in lines for word in terms(search_text(line))}
    total = sum(weights.values())
    return sum(weights[word] for word in weights if word in held) / total if total else 0.0


def closeness(nearness: float, covered: float) -> float:
    """Vectors and words together, in [0, 1]: either can tell alone."""
    return 1 - (1 - nearness) * (1 - covered)


def faded(best: float, scores: Sequence[float]) -> list[float]:
    """Scores in [0, 1] for a falling ranking whose first is ``best`` close."""
    return [best * float(np.exp(-(scores[0] - score) / FADE)) for score in scores]


def least(candidates: int) -> float:
    """How close the best of so many must be to mean anything: chance comes closer among more.

    Measured on questions about other videos: 0.35 among a hundred lines, 0.5 in a week of them.
    """
    return 0.25 + 0.05 * float(np.log10(max(1, candidates)))
