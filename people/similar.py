"""Finds pairs of characters whose exemplars are alike enough to be one person; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.media import IdentityKind
from domain.people import LikelySame
from people.matching import normalise_rows

MIN_COSINE_SHARE = 1.0
"""Share of a model's same-person cosine from which a pair is suggested."""

Exemplars = Mapping[IdentityKind, Sequence[Sequence[float] | NDArray[np.float32]]]
"""The exemplar vectors of one person by kind, shape (D,) each."""


def similar_people(
    people: Mapping[int, Exemplars],
    thresholds: Mapping[IdentityKind, float],
    limit: int | None = None,
) -> list[LikelySame[int]]:
    """Return pairs of characters that may be the same person, most similar first.

    A pair that is alike by face and by voice is returned once, by the better of both. Characters
    without exemplars of a kind are not compared by it.

    Args:
        people: Number of the character -> its exemplars.
        thresholds: For each kind, the least cosine for the same person, as its model declares.
        limit: The most pairs to return; None: all.
    """

    def rank(pair: LikelySame[int]) -> float:
        # Cosines of face and voice models differ in scale: each is divided by its own threshold.
        return pair.cosine / thresholds[pair.kind]

    pairs = [
        pair
        for kind in thresholds
        for pair in _of_kind(people, kind, MIN_COSINE_SHARE * thresholds[kind], limit)
    ]
    best: dict[tuple[int, int], LikelySame[int]] = {}
    for pair in sorted(pairs, key=rank, reverse=True):
        best.setdefault((pair.one, pair.other), pair)
    return sorted(best.values(), key=lambda a: (-rank(a), a.one, a.other))[:limit]


def mean_look(vectors: Sequence[Sequence[float] | NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the mean direction of vectors (N, D), shape (D,), length 1."""
    mean = np.mean(np.asarray(vectors), axis=0)
    return np.asarray(normalise_rows(mean)[0], dtype=np.float32)


def _of_kind(
    people: Mapping[int, Exemplars], kind: IdentityKind, min_cosine: float, limit: int | None
) -> Iterator[LikelySame[int]]:
    vectors_by_number = {
        number: looks[kind] for number, looks in sorted(people.items()) if looks.get(kind)
    }
    # Vectors of different length come from different models and cannot be compared.
    for size in sorted({len(vectors[0]) for vectors in vectors_by_number.values()}):
        numbers = [n for n, vectors in vectors_by_number.items() if len(vectors[0]) == size]
        rows = np.stack([mean_look(vectors_by_number[n]) for n in numbers])
        cosines = np.clip(rows @ rows.T, -1.0, 1.0)
        close = np.argwhere(np.triu(cosines >= min_cosine, k=1))
        # The best pairs overall are among the best pairs of each kind.
        best = np.argsort(-cosines[tuple(close.T)], kind="stable")[:limit]
        for i, j in close[best]:
            cosine = float(cosines[i, j])
            yield LikelySame[int](one=numbers[i], other=numbers[j], kind=kind, cosine=cosine)
