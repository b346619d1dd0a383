"""Average-linkage clustering of unit vectors with cannot-link constraints. Deterministic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_CANNOT_LINK = -2.0
"""Below every cosine: never merged."""


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
    count = len(vectors)
    if count == 0:
        return []
    groups = group_by_label(seeds if seeds is not None else range(count), range(count))
    clusters = _Clusters(vectors, cannot_link, groups)
    while (pair := clusters.closest_pair(threshold)) is not None:
        clusters.merge(pair[0], pair[1])
    labels = [0] * count
    for group in clusters.groups:
        for member in group:
            labels[member] = min(group)
    return renumber(labels)


def group_by_label(labels: Sequence[int], indices: Sequence[int]) -> list[list[int]]:
    """Collect the indices of each label.

    Args:
        labels: One label per index.
        indices: The indices, in order.

    Returns:
        The indices of each label, labels in order of first appearance.
    """
    groups: dict[int, list[int]] = {}
    for label, index in zip(labels, indices, strict=True):
        groups.setdefault(label, []).append(index)
    return list(groups.values())


def renumber(labels: Sequence[int]) -> list[int]:
    """Renumber labels from 0 in order of first appearance."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


class _Clusters:
    """Groups and the mean cosines between them; a merge updates one row."""

    def __init__(
        self,
        vectors: NDArray[np.float32],
        cannot_link: NDArray[np.bool_] | None,
        groups: list[list[int]],
    ) -> None:
        self.groups = groups
        member = np.zeros((len(groups), len(vectors)))
        for row, group in enumerate(groups):
            member[row, group] = 1
        self._sums = member @ vectors.astype(np.float64)
        self._sizes = member.sum(axis=1)
        blocked = np.zeros((len(groups), len(groups)))
        if cannot_link is not None:
            blocked = member @ cannot_link.astype(np.float64) @ member.T
        self._cannot_link = blocked > 0
        self._means = np.full(self._cannot_link.shape, _CANNOT_LINK)
        for row in range(len(groups)):
            self._update(row)

    def closest_pair(self, threshold: float) -> tuple[int, int] | None:
        """Return the two groups to merge next, the earlier first; None below the threshold."""
        best = int(np.argmax(self._means))
        row, column = divmod(best, len(self._means))
        if self._means[row, column] < threshold:
            return None
        return min(row, column), max(row, column)

    def merge(self, row: int, absorbed: int) -> None:
        """Merge group ``absorbed`` into group ``row``."""
        self.groups[row] = self.groups[row] + self.groups[absorbed]
        self.groups[absorbed] = []
        self._sums[row] += self._sums[absorbed]
        self._sizes[row] += self._sizes[absorbed]
        self._sizes[absorbed] = 0
        self._cannot_link[row] |= self._cannot_link[absorbed]
        self._cannot_link[:, row] |= self._cannot_link[:, absorbed]
        self._means[absorbed] = self._means[:, absorbed] = _CANNOT_LINK
        self._update(row)

    def _update(self, row: int) -> None:
        live = (self._sizes > 0) & ~self._cannot_link[row]
        live[row] = False
        means = np.full(len(self._sizes), _CANNOT_LINK)
        if live.any():
            dots = self._sums[live] @ self._sums[row]
            means[live] = dots / (self._sizes[live] * self._sizes[row])
        self._means[row] = self._means[:, row] = means
