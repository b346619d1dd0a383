"""Finds characters that may be the same person by their exemplars; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from domain.base import Frozen
from domain.media import IdentityKind
from people.matching import mean_direction

MIN_COSINE_SHARE = 0.8
"""Of the cosine at which a model takes two for one: who is less alike is not asked about."""

Exemplars = Mapping[IdentityKind, Sequence[Sequence[float]]]
"""The exemplar vectors of one person by kind, shape (D,) each."""


class SimilarPair(Frozen):
    """Two characters that may be one: ``cosine`` between the directions of their exemplars."""

    one: int
    other: int
    kind: IdentityKind
    cosine: float


def similar_people(
    people: Mapping[int, Exemplars], same: Mapping[IdentityKind, float], most: int | None = None
) -> list[SimilarPair]:
    """Return pairs that may be the same person, the ``most`` most similar, best first.

    Of a pair that is alike in face and in voice the better of the two counts. A person without
    exemplars of a kind is alike to nobody in it.

    Args:
        people: number of the character -> its exemplars.
        same: the cosine at which the model of each kind takes two for one.
        most: pairs at most; None: all.
    """

    def rank(one: SimilarPair) -> float:
        # Voices are alike at other cosines than faces: both are measured by their own model's.
        return one.cosine / same[one.kind]

    pairs = [
        one for kind in same for one in _of_kind(people, kind, MIN_COSINE_SHARE * same[kind], most)
    ]
    best: dict[tuple[int, int], SimilarPair] = {}
    for one in sorted(pairs, key=rank, reverse=True):
        best.setdefault((one.one, one.other), one)
    return sorted(best.values(), key=lambda a: (-rank(a), a.one, a.other))[:most]


def _of_kind(
    people: Mapping[int, Exemplars], kind: IdentityKind, least: float, most: int | None
) -> Iterator[SimilarPair]:
    known = {number: looks[kind] for number, looks in sorted(people.items()) if looks.get(kind)}
    # Exemplars of another model have another length, and cannot be compared.
    for size in sorted({len(vectors[0]) for vectors in known.values()}):
        numbers = [n for n, vectors in known.items() if len(vectors[0]) == size]
        rows = np.asarray([mean_direction(known[n]) for n in numbers], dtype=np.float32)
        cosines = np.clip(rows @ rows.T, -1.0, 1.0)
        close = np.argwhere(np.triu(cosines >= least, k=1))
        # Who is among the best of all is among the best of a kind.
        best = np.argsort(-cosines[tuple(close.T)], kind="stable")[:most]
        for i, j in close[best]:
            cosine = float(cosines[i, j])
            yield SimilarPair(one=numbers[i], other=numbers[j], kind=kind, cosine=cosine)
