"""Finds semantic triples by the graph of their entities; pure.

The triples nearest to the query seed a Personalized PageRank with their entities; a triple scores
the sum of its two ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retrieval.page_rank import WeightedGraph, page_rank, weighted_graph
from strategies.worldmm.episodic import Numbered, entity_seeds, nearest
from strategies.worldmm.graph import NO_SYNONYMS, Floats, Pairs, Synonyms, Vectors
from strategies.worldmm.settings import WorldMemorySettings


@dataclass(frozen=True, eq=False)
class SemanticIndex:
    """What is searched: the vectors (T, D) and ends (T, 2) of triples that are valid.

    ``standing`` (E,) is in how many of them an entity stands.
    """

    graph: WeightedGraph
    vectors: Vectors
    ends: Pairs
    standing: Floats


def semantic_index(
    entities: int, ends: Pairs, vectors: Vectors, alike: Synonyms = NO_SYNONYMS
) -> SemanticIndex:
    """Return the index of T triples among E entities.

    Args:
        entities: E.
        ends: (T, 2), subject and object of each triple.
        vectors: (T, D) of the triples' texts, unit rows.
        alike: synonyms among the entities.
    """
    edges = np.concatenate([ends, alike.pairs])
    weights = np.concatenate([np.ones(len(ends)), alike.cosines])
    standing = np.bincount(ends.ravel(), minlength=entities).astype(np.float64)
    return SemanticIndex(weighted_graph(entities, edges, weights), vectors, ends, standing)


def search_semantic(
    index: SemanticIndex, query: Vectors, settings: WorldMemorySettings
) -> tuple[Numbered, ...]:
    """Return the triples for a query of shape (D,), best first.

    Equal scores, as of triples with the same ends, are ordered by likeness to the query.
    """
    if not len(index.ends):
        return ()
    cosines = index.vectors @ query
    matched = nearest(cosines, settings.matched_triples)
    seeds = entity_seeds(index.standing, index.ends, matched)
    ranks = page_rank(index.graph, seeds, settings.damping)
    scores = np.round(ranks[index.ends].sum(axis=1), 12)
    order = np.lexsort((-cosines, -scores))[: settings.semantic_triples]
    return tuple(Numbered(int(n), float(scores[n])) for n in order if scores[n] > 0)
