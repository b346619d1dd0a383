"""Matches groups of a clip to known identities, and chooses exemplars; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.media import Group, Sighting

Matrix = NDArray[np.float64]

NEAR_DUPLICATE = 0.98
"""Cosine from which two vectors are too alike for both to be exemplars."""


def normalise_rows(vectors: Any) -> Matrix:
    """Scale rows of ``vectors`` (N, D) to length 1; rows of zeros stay zeros."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))


def mean_direction(vectors: Any) -> list[float]:
    """Return the mean direction of rows (N, D) as a list of D numbers, length 1."""
    return [float(value) for value in normalise_rows(np.mean(vectors, axis=0))[0]]


def group_vector(group: Group) -> Matrix:
    """Return the mean direction of a group's sightings, shape (D,), length 1."""
    mean = normalise_rows([sighting.vector for sighting in group.sightings]).mean(axis=0)
    return np.asarray(normalise_rows(mean)[0])


def co_occur(first: Group, second: Group) -> bool:
    """Tell whether two groups are visible (or audible) at the same time, if only for an instant."""
    return any(_overlaps(a, b) for a in first.sightings for b in second.sightings)


def _overlaps(a: Sighting, b: Sighting) -> bool:
    same_instant = a.span.start_ms == b.span.start_ms
    return same_instant or a.span.overlap_ms(b.span) > 0


def match_identities(
    groups: Sequence[Group], centres: Sequence[Sequence[float]], threshold: float
) -> list[int | None]:
    """Assign groups to known identities, best cosine first.

    Args:
        groups: The groups of one clip.
        centres: The mean of each identity's exemplars, (D,); not normalised, so that the dot
            product with a group's vector is the mean cosine over the exemplars.
        threshold: The least mean cosine; each model declares its own.

    Returns:
        For each group the index of its identity, or None for a new one. Two groups that are
        visible at the same time never share an identity.
    """
    assigned: list[int | None] = [None] * len(groups)
    for _, group, identity in _candidate_pairs(groups, centres, threshold):
        same_identity = [
            index
            for index, assigned_identity in enumerate(assigned)
            if assigned_identity == identity
        ]
        if assigned[group] is None and not any(
            co_occur(groups[group], groups[r]) for r in same_identity
        ):
            assigned[group] = identity
    return assigned


def _candidate_pairs(
    groups: Sequence[Group], centres: Sequence[Sequence[float]], threshold: float
) -> list[tuple[float, int, int]]:
    if not groups or not centres:
        return []
    vectors = np.stack([group_vector(group) for group in groups])
    scores = vectors @ np.asarray(centres, dtype=np.float64).T
    above_threshold = np.argwhere(scores >= threshold)
    # Rounded, so that the last bits of a matrix product do not order equal scores.
    pairs = [(round(float(scores[g, i]), 9), int(g), int(i)) for g, i in above_threshold]
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))


def choose_exemplars(
    qualities: Sequence[float],
    vectors: Sequence[Sequence[float]],
    max_exemplars: int,
    threshold: float,
) -> list[int]:
    """Choose exemplars by quality and diversity, deterministically.

    The one with the best quality first; then repeatedly that with the highest ``quality * (1 -
    cosine)`` to its closest chosen one. Vectors whose cosine to the mean of all is below
    ``threshold`` are outliers, and near duplicates of a chosen one are left out.

    Args:
        qualities: One for each candidate, at least 0.
        vectors: (N, D); earlier ones win ties.
        max_exemplars: The most to choose.
        threshold: The model's least cosine for the same person.

    Returns:
        Indices of the candidates to keep, in the order they were chosen; at least one.
    """
    rows = normalise_rows(vectors)
    is_inlier = rows @ normalise_rows(rows.mean(axis=0))[0] >= threshold
    weights = np.asarray(qualities, dtype=np.float64) + 1e-9
    weights = np.where(is_inlier, weights, -1.0) if is_inlier.any() else weights
    chosen = [int(np.argmax(weights))]
    closest = rows @ rows[chosen[0]]
    while len(chosen) < max_exemplars:
        gain = np.round(weights * (1.0 - closest), 12)
        gain[(closest >= NEAR_DUPLICATE) | (weights < 0)] = -1.0
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen.append(best)
        closest = np.maximum(closest, rows @ rows[best])
    return chosen
