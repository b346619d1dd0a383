"""Pairs characters of one video with those of others whose faces or voices are alike; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from domain.media import IdentityKind
from domain.people import CharacterRef, LikelySame

Looks = Mapping[IdentityKind, NDArray[np.float32]]
"""The mean direction of one character's exemplars by kind, shape (D,), length 1."""


LikelyRefs = LikelySame[CharacterRef]
"""Two characters of different videos that may be one person."""


def mutual_best(
    ours: Mapping[CharacterRef, Looks],
    theirs: Mapping[CharacterRef, Looks],
    thresholds: Mapping[IdentityKind, float],
) -> list[LikelyRefs]:
    """Return the pairs of which each is the other's best match, most alike first.

    A pair that is alike by face and by voice is returned once, by the better of both.

    Args:
        ours: The characters of one video.
        theirs: Those of others, made by the same models.
        thresholds: For each kind, the least cosine for the same person, as its model declares.
    """

    def rank(pair: LikelyRefs) -> float:
        # Cosines of face and voice models differ in scale: each is divided by its own threshold.
        return pair.cosine / thresholds[pair.kind]

    found = [pair for kind in thresholds for pair in _of_kind(ours, theirs, kind, thresholds[kind])]
    best: dict[tuple[CharacterRef, CharacterRef], LikelyRefs] = {}
    for pair in sorted(found, key=rank, reverse=True):
        best.setdefault((pair.one, pair.other), pair)
    pairs = sorted(
        best.values(),
        key=lambda pair: (
            -rank(pair),
            pair.one.video,
            pair.one.number,
            pair.other.video,
            pair.other.number,
        ),
    )
    return [
        pair.model_copy(update={"sure": _is_sure(pair, ours, theirs, thresholds)}) for pair in pairs
    ]


def sure_cosine(threshold: float) -> float:
    """Return the cosine from which a pair is sure: halfway between the threshold and 1."""
    return (1 + threshold) / 2


def _is_sure(
    pair: LikelyRefs,
    ours: Mapping[CharacterRef, Looks],
    theirs: Mapping[CharacterRef, Looks],
    thresholds: Mapping[IdentityKind, float],
) -> bool:
    """Tell whether a pair is far above the threshold, and alike in all that both have."""
    one, other = ours[pair.one], theirs[pair.other]
    both = [kind for kind in thresholds if _comparable(one.get(kind), other.get(kind))]
    alike = all(float(one[kind] @ other[kind]) >= thresholds[kind] for kind in both)
    return alike and pair.cosine >= sure_cosine(thresholds[pair.kind])


def _comparable(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> bool:
    return one is not None and other is not None and len(one) == len(other)


def _of_kind(
    ours: Mapping[CharacterRef, Looks],
    theirs: Mapping[CharacterRef, Looks],
    kind: IdentityKind,
    threshold: float,
) -> Iterator[LikelyRefs]:
    sizes = {len(looks[kind]) for looks in ours.values() if kind in looks}
    for size in sorted(sizes):
        rows, columns = (
            [ref for ref, looks in side.items() if kind in looks and len(looks[kind]) == size]
            for side in (ours, theirs)
        )
        if columns:
            cosines = (
                np.stack([ours[ref][kind] for ref in rows])
                @ np.stack([theirs[ref][kind] for ref in columns]).T
            )
            for row, column in _best_of_both(np.clip(cosines, -1, 1), columns, threshold):
                cosine = min(float(cosines[row, column]), 1.0)
                yield LikelyRefs(one=rows[row], other=columns[column], kind=kind, cosine=cosine)


def _best_of_both(
    cosines: NDArray[np.float32], columns: list[CharacterRef], threshold: float
) -> Iterator[tuple[int, int]]:
    """Yield rows and columns that are each other's best, among the columns of one video."""
    by_video: dict[str, list[int]] = {}
    for column, ref in enumerate(columns):
        by_video.setdefault(ref.video, []).append(column)
    best_rows = cosines.argmax(axis=0)
    for of_video in by_video.values():
        best_columns = cosines[:, of_video].argmax(axis=1)
        for row, place in enumerate(best_columns):
            column = of_video[place]
            if best_rows[column] == row and cosines[row, column] >= threshold:
                yield row, column
