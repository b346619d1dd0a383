"""Finds captions of one scale by its graph; pure.

The triples nearest to the query seed a Personalized PageRank with their entities; captions join the
restart with little weight by their own likeness to the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.page_rank import page_rank
from strategies.worldmm.graph import Floats, Pairs, ScaleGraph, Vectors
from strategies.worldmm.settings import WorldMemorySettings

KeepTriples = Callable[[Sequence[int]], Sequence[int]]
"""Returns which of the triples with these numbers bear on the query."""


@dataclass(frozen=True, eq=False)
class ScaleIndex:
    """What is searched at a scale: C captions and T triples.

    ``caption_vectors`` (C, D) and ``triple_vectors`` (T, D) have unit rows; ``ends`` (T, 2) are the
    entities of each triple.
    """

    graph: ScaleGraph
    caption_vectors: Vectors
    triple_vectors: Vectors
    ends: Pairs


@dataclass(frozen=True)
class Numbered:
    """A caption or triple by number, with its score."""

    number: int
    score: float


@dataclass(frozen=True)
class ScaleFound:
    """What one scale has for a query: captions by rank, and the triples that led there."""

    captions: tuple[Numbered, ...]
    triples: tuple[Numbered, ...]


def search_scale(
    index: ScaleIndex,
    query: Vectors,
    most: int,
    settings: WorldMemorySettings,
    keep: KeepTriples | None = None,
) -> ScaleFound:
    """Return the captions of a scale for a query, best first.

    Args:
        index: what is searched.
        query: (D,), unit.
        most: captions.
        settings: the strategy's.
        keep: chooses among the matched triples; None keeps all.
    """
    matched = nearest(index.triple_vectors @ query, settings.matched_triples)
    if keep is not None:
        kept = set(keep([triple.number for triple in matched]))
        matched = tuple(triple for triple in matched if triple.number in kept)
    restart = _restart(index, query, matched, settings.caption_weight)
    ranks = page_rank(index.graph.graph, restart, settings.damping)
    return ScaleFound(nearest(ranks[index.graph.entities :], most), matched)


def nearest(scores: Floats | Vectors, most: int) -> tuple[Numbered, ...]:
    """Return the highest scores above 0, best first, those first seen first among equals."""
    order = np.argsort(-scores, kind="stable")[:most]
    return tuple(Numbered(int(n), float(scores[n])) for n in order if scores[n] > 0)


def _restart(
    index: ScaleIndex, query: Vectors, matched: Sequence[Numbered], caption_weight: float
) -> Floats:
    """Return where walks begin: entities of matched triples, and a little every caption."""
    restart = np.zeros(index.graph.entities + index.graph.captions)
    restart[: index.graph.entities] = entity_seeds(index.graph.standing, index.ends, matched)
    cosines = (index.caption_vectors @ query).astype(np.float64)
    restart[index.graph.entities :] = caption_weight * _unit_range(cosines)
    return restart


def entity_seeds(standing: Floats, ends: Pairs, matched: Sequence[Numbered]) -> Floats:
    """Weigh entities by the mean score of their triples, over how many captions they stand in.

    One who stands in every caption, such as "I", tells little of where to look.
    """
    seeds, counts = np.zeros(len(standing)), np.zeros(len(standing))
    for triple in matched:
        for entity in set(ends[triple.number].tolist()):
            seeds[entity] += triple.score
            counts[entity] += 1
    return np.asarray(seeds / np.maximum(counts, 1) / np.maximum(standing, 1))


def _unit_range(values: Floats) -> Floats:
    """Stretch values to [0, 1]; ones where all are equal."""
    if not len(values) or np.ptp(values) == 0:
        return np.ones(len(values))
    return np.asarray((values - values.min()) / np.ptp(values))
