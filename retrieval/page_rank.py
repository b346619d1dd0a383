"""Personalized PageRank on undirected weighted graphs, solved as a linear system by scipy; pure.

PageRank with restart distribution ``r`` and damping ``d`` is the ``x`` of sum 1 that solves
``x = d A D^-1 x + (1 - d) r`` (Page et al. 1999), where ``A`` holds the weights and ``D`` the
degrees; a node without edges jumps to ``r``. On an undirected graph this is the symmetric positive
definite system ``(I - d D^-1/2 A D^-1/2) y = D^-1/2 r`` with ``x`` proportional to ``D^1/2 y``,
which conjugate gradients solve in a few products of a sparse matrix with a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import LinearOperator, cg

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

TOLERANCE = 1e-7
"""Norm of the residual, as a share of the right side's, at which solving ends."""


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """An undirected graph of N nodes, ready for searches.

    ``spread`` (N, N) is ``D^-1/2 A D^-1/2``; ``roots`` (N,) are the square roots of the degrees, 1
    for nodes without edges.
    """

    spread: csr_array
    roots: Floats

    @property
    def nodes(self) -> int:
        return len(self.roots)


def weighted_graph(nodes: int, edges: Pairs, weights: Floats) -> WeightedGraph:
    """Return a graph from arrays.

    Args:
        nodes: N.
        edges: (M, 2), numbers in [0, N) of the two ends; those of one pair add up, loops are left
            out.
        weights: (M,), above 0.

    Raises:
        ValueError: an end is no node, or a weight is not above 0.
    """
    if len(edges) and not (edges.min() >= 0 and edges.max() < nodes):
        raise ValueError(f"edges end at nodes {edges.min()} to {edges.max()} of {nodes}")
    if not (weights > 0).all():
        raise ValueError("weights of edges are above 0")
    joined = edges[:, 0] != edges[:, 1]
    ends, values = edges[joined].astype(np.int32), weights[joined]
    rows = np.concatenate([ends[:, 0], ends[:, 1]])
    columns = np.concatenate([ends[:, 1], ends[:, 0]])
    both = np.concatenate([values, values])
    degrees = np.bincount(rows, both, minlength=nodes)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    spread = coo_array((both / (roots[rows] * roots[columns]), (rows, columns)), (nodes, nodes))
    return WeightedGraph(spread.tocsr(), roots)


def page_rank(graph: WeightedGraph, restart: Floats, damping: float) -> Floats:
    """Return the Personalized PageRank of every node, of sum 1; zeros without a restart.

    Args:
        restart: (N,), at least 0; where a walk begins again, up to a factor.
        damping: probability in [0, 1) that a walk goes on.
    """
    if not restart.any():
        return np.zeros(graph.nodes)

    def reduced(vector: Floats) -> Floats:
        return np.asarray(vector - damping * (graph.spread @ vector))

    right = restart / (restart.sum() * graph.roots)
    system = LinearOperator((graph.nodes, graph.nodes), matvec=reduced, dtype=np.float64)
    solved, _ = cg(system, right, rtol=TOLERANCE, atol=0.0)
    ranks = np.maximum(graph.roots * solved, 0.0)
    return np.asarray(ranks / ranks.sum())
