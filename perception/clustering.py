"""Average-linkage clustering of unit vectors with cannot-link constraints. Deterministic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

# Distances are 2 - cosine, in [1, 3]: less than all of them, and more than any mean without such a
# pair.
_TOGETHER, _APART = 0.0, 1e9


def cluster(
    vectors: NDArray[np.float32],
    threshold: float,
    cannot_link: NDArray[np.bool_] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[int]:
    """Merge the two most similar groups until no pair reaches the threshold.

    Two groups are as alike as the mean cosine between a vector of one and a vector of the other.

    Args:
        vectors: N x D, L2-normalised.
        threshold: groups are merged at this mean cosine or above.
        cannot_link: N x N, symmetric; True where two vectors must not share a group.
        seeds: groups to begin with, one number a vector; each vector alone by default.

    Returns:
        The group of each vector, numbered from 0 in order of first appearance.
    """
    if len(vectors) < 2:
        return [0] * len(vectors)
    exact = vectors.astype(np.float64)
    distances = 2 - exact @ exact.T
    if cannot_link is not None:
        distances[cannot_link] = _APART
    if seeds is not None:
        of_seed = np.asarray(seeds)
        distances[of_seed[:, None] == of_seed] = _TOGETHER
    tree = linkage(distances[np.triu_indices(len(distances), 1)], "average")
    return renumber(fcluster(tree, 2 - threshold, "distance").tolist())


def group_by_label(labels: Sequence[int], indices: Sequence[int]) -> list[list[int]]:
    """Return the indices of each label, labels in order of first appearance."""
    groups: dict[int, list[int]] = {}
    for label, index in zip(labels, indices, strict=True):
        groups.setdefault(label, []).append(index)
    return list(groups.values())


def renumber(labels: Sequence[int]) -> list[int]:
    """Renumber labels from 0 in order of first appearance."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]
