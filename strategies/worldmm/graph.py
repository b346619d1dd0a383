"""The graph of a scale: entities and captions, and what joins them; pure.

An entity is joined to the captions that it stands in, the subject of a triple to its object, and
entities whose names are alike to each other. Parts are added as captions are written; the graph for
searches is made of their arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.stated import EntityKind
from retrieval.page_rank import WeightedGraph, weighted_graph

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Pairs = NDArray[np.int64]
Vectors = NDArray[np.float32]

BLOCK = 1024
"""Names that are compared with all others at a time."""
APART = frozenset({EntityKind.PERSON})
"""Kinds of which two are never synonyms: names and tags of two people may differ by a letter."""


@dataclass(frozen=True, eq=False)
class Synonyms:
    """S pairs of entities with names alike: ``pairs`` (S, 2), smaller first, ``cosines`` (S,)."""

    pairs: Pairs
    cosines: Floats


NO_SYNONYMS = Synonyms(np.zeros((0, 2), dtype=np.int64), np.zeros(0))


def synonyms(
    vectors: Vectors, least: float, *, known: int = 0, apart: Flags | None = None
) -> Synonyms:
    """Return the pairs of entities whose names' vectors have at least this cosine.

    Args:
        vectors: (E, D) unit rows.
        least: cosine in [0, 1].
        known: the first entities, whose pairs among each other are known already.
        apart: (E,) marks entities of which two are never synonyms.
    """
    found = list(_blocks(vectors, least, known))
    if not found:
        return NO_SYNONYMS
    pairs = np.concatenate([block for block, _ in found])
    cosines = np.concatenate([block for _, block in found])
    joined = np.ones(len(pairs), dtype=np.bool_) if apart is None else ~apart[pairs].all(axis=1)
    return Synonyms(pairs[joined], cosines[joined])


def _blocks(vectors: Vectors, least: float, known: int) -> Iterator[tuple[Pairs, Floats]]:
    """Yield pairs of a block of new entities with all entities before each of them."""
    for start in range(known, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        cosines = block @ vectors[: start + len(block)].T
        rows, columns = np.nonzero(cosines >= least)
        earlier = columns < rows + start
        rows, columns = rows[earlier], columns[earlier]
        pairs = np.stack([columns, rows + start], axis=1).astype(np.int64)
        yield pairs, np.minimum(cosines[rows, columns], 1.0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ScaleGraph:
    """The graph of a scale with E entities and C captions.

    Node ``e`` is entity ``e``, node ``E + c`` caption ``c``. ``standing`` (E,) is in how many
    captions an entity stands.
    """

    entities: int
    captions: int
    standing: Floats
    graph: WeightedGraph


def scale_graph(
    entities: int, captions: int, mentions: Pairs, relations: Pairs, alike: Synonyms = NO_SYNONYMS
) -> ScaleGraph:
    """Return the graph of a scale; a relation weighs as much as there are triples of it.

    Args:
        entities: E.
        captions: C.
        mentions: (M, 2): an entity, and a caption that it stands in; each pair once.
        relations: (T, 2): subject and object of each triple.
        alike: synonyms among the entities.
    """
    standing = np.bincount(mentions[:, 0], minlength=entities).astype(np.float64)
    stated = mentions + np.array([0, entities])
    edges = np.concatenate([stated, relations, alike.pairs])
    weights = np.concatenate([np.ones(len(mentions) + len(relations)), alike.cosines])
    graph = weighted_graph(entities + captions, edges, weights)
    return ScaleGraph(entities, captions, standing, graph)


def pairs_of(numbers: Sequence[tuple[int, int]]) -> Pairs:
    """Return pairs of numbers as an array, (N, 2)."""
    return np.array(numbers, dtype=np.int64).reshape(-1, 2)
