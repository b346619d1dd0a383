from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from perception.clustering import cluster, renumber


def around(angles: list[float]) -> NDArray[np.float32]:
    """Unit vectors in a plane, by degrees."""
    radians = np.radians(angles)
    return np.stack([np.cos(radians), np.sin(radians)], 1).astype(np.float32)


angles = st.lists(st.integers(0, 359).map(float), min_size=1, max_size=14)
thresholds = st.sampled_from([-0.5, 0.0, 0.3, 0.7, 0.95])


def test_one_alone_is_a_group() -> None:
    assert cluster(around([17]), 0.5) == [0]
    assert cluster(np.zeros((0, 4), np.float32), 0.5) == []


def test_a_chain_does_not_join_its_ends() -> None:
    # Each is like its neighbour, the ends are not alike: the mean keeps them apart.
    labels = cluster(around([0, 40, 80, 120, 160]), 0.6)
    assert labels[0] != labels[-1]


def test_seeds_are_where_groups_begin() -> None:
    assert cluster(around([0, 180, 90]), 0.5, seeds=[5, 5, 9]) == [0, 0, 1]


@given(angles, thresholds)
def test_groups_left_over_are_not_alike(found: list[float], threshold: float) -> None:
    vectors = around(found)
    labels = np.array(cluster(vectors, threshold))
    groups = [vectors[labels == n] for n in range(labels.max() + 1)]
    for i, one in enumerate(groups):
        for other in groups[i + 1 :]:
            assert float((one @ other.T).mean()) < threshold + 1e-6


@given(angles, thresholds, st.data())
def test_no_forbidden_pair_joins(found: list[float], threshold: float, data: st.DataObject) -> None:
    count = len(found)
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    apart = np.zeros((count, count), bool)
    for a, b in data.draw(st.lists(pairs, max_size=10)):
        if a != b:
            apart[a, b] = apart[b, a] = True
    labels = cluster(around(found), threshold, apart)
    assert not any(apart[i, j] and labels[i] == labels[j] for i in range(count) for j in range(i))


@given(angles, thresholds)
def test_the_same_vectors_give_the_same_groups(found: list[float], threshold: float) -> None:
    labels = cluster(around(found), threshold)
    assert labels == cluster(around(found), threshold)
    assert renumber(labels) == labels
