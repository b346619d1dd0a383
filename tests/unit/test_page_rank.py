"""Personalized PageRank, beside a library that works otherwise and a plain power iteration."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.page_rank import DAMPING, NODES, power_iteration, random_graph, top
from retrieval.page_rank import Floats, Pairs, page_rank, weighted_graph

Edge = tuple[int, int, float]


def _reference(edges: Pairs, weights: Floats, restart: Floats, damping: float) -> Floats:
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(restart)))
    for (left, right), weight in zip(edges.tolist(), weights.tolist(), strict=True):
        if left != right:
            before = graph.get_edge_data(left, right, {"weight": 0.0})["weight"]
            graph.add_edge(left, right, weight=before + weight)
    begin = dict(enumerate(restart.tolist()))
    ranks = networkx.pagerank(graph, damping, begin, tol=1e-12, max_iter=1_000)
    return np.array([ranks[node] for node in range(len(restart))])


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_an_independent_library(seed: int) -> None:
    edges, weights, restart = random_graph(2_000, 8_000, seed)
    ranks = page_rank(weighted_graph(2_000, edges, weights), restart, DAMPING)
    reference = _reference(edges, weights, restart, DAMPING)
    assert top(ranks) == top(reference)
    assert np.allclose(ranks, reference, atol=1e-7)


@pytest.mark.full
def test_the_first_of_a_large_graph_are_those_of_a_plain_power_iteration() -> None:
    edges, weights, restart = random_graph(NODES, 4 * NODES)
    ranks = page_rank(weighted_graph(NODES, edges, weights), restart, DAMPING)
    assert top(ranks) == top(power_iteration(edges, weights, restart))


ENDS = st.integers(0, 7)
GRAPHS = st.lists(st.tuples(ENDS, ENDS, st.floats(0.1, 5)), max_size=20)
RESTARTS = st.lists(st.floats(0.01, 1) | st.just(0.0), min_size=8, max_size=8).filter(any)


@given(GRAPHS, RESTARTS, st.floats(0, 0.9))
def test_any_graph_is_ranked(graph: list[Edge], begin: list[float], damping: float) -> None:
    edges = np.array([[left, right] for left, right, _ in graph], dtype=np.int64).reshape(-1, 2)
    weights = np.array([weight for *_, weight in graph], dtype=float)
    restart = np.array(begin)
    ranks = page_rank(weighted_graph(8, edges, weights), restart, damping)
    assert ranks.sum() == pytest.approx(1)
    assert np.allclose(ranks, _reference(edges, weights, restart, damping), atol=1e-6)


def test_nothing_to_start_from_ranks_nothing() -> None:
    graph = weighted_graph(3, np.array([[0, 1]]), np.ones(1))
    assert page_rank(graph, np.zeros(3), 0.5).tolist() == [0, 0, 0]


def test_edges_that_end_nowhere_or_weigh_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="of 2"):
        weighted_graph(2, np.array([[0, 2]]), np.ones(1))
    with pytest.raises(ValueError, match="above 0"):
        weighted_graph(2, np.array([[0, 1]]), np.zeros(1))
