"""Finds captions of one scale by its graph; pure.

The triples nearest to the query seed a Personalized PageRank with their entities; captions join the
restart with little weight by their own likeness to the query. Where no language model chooses among
what is found, captions are ranked by their words and by their own and their triples' likeness as
well, since PageRank alone finds hardly more than likeness does (docs/strategies.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from retrieval.page_rank import page_rank
from strategies.worldmm.graph import Floats, Numbers, Pairs, ScaleGraph, Vectors
from strategies.worldmm.settings import WorldMemorySettings

SMALLEST = 1e-6
"""Score of the caption that fits least, which may be found nevertheless."""

KeepTriples = Callable[[Sequence[int]], Sequence[int]]
"""Returns which of the triples with these numbers bear on the query."""


@dataclass(frozen=True, eq=False)
class ScaleIndex:
    """What is searched at a scale: C captions and T triples.

    ``caption_vectors`` (C, D) and ``triple_vectors`` (T, D) have unit rows; ``ends`` (T, 2) are the
    entities of each triple, ``stated_in`` (T,) is the caption that states it.
    """

    graph: ScaleGraph
    caption_vectors: Vectors
    triple_vectors: Vectors
    ends: Pairs
    stated_in: Numbers


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
    *,
    words: Floats | None = None,
    graph: bool = True,
) -> ScaleFound:
    """Return the captions of a scale for a query, best first.

    Args:
        query: (D,), unit.
        settings: the strategy's.
        keep: chooses among the matched triples; None keeps all.
        words: (C,), how well each caption matches in words; None ranks by PageRank alone.
        graph: False leaves entities and triples out.
    """
    matched = nearest(index.triple_vectors @ query, settings.matched_triples)
    if keep is not None:
        kept = set(keep([triple.number for triple in matched]))
        matched = tuple(triple for triple in matched if triple.number in kept)
    cosines = (index.caption_vectors @ query).astype(np.float64)
    signals = [cosines] if words is None else [cosines, words]
    if not graph:
        return ScaleFound(nearest(_together(signals), most), ())
    restart = _restart(index, cosines, matched, settings.caption_weight)
    ranks = page_rank(index.graph.graph, restart, settings.damping)[index.graph.entities :]
    if words is not None:
        # The cosine of each caption's triple that is nearest to the query, (C,); or 0.
        stated = np.zeros(index.graph.captions)
        np.maximum.at(stated, index.stated_in, index.triple_vectors @ query)
        ranks = _together([*signals, stated], _unit_range(ranks))
    return ScaleFound(nearest(ranks, most), matched)


def _together(signals: Sequence[Floats], rank: Floats | float = 0.0) -> Floats:
    """Add standardised signals and a rank in [0, 1]; return the sums in (0, 1], (C,)."""
    summed = np.sum([_standard(signal) for signal in signals], axis=0) + rank
    return np.maximum(_unit_range(summed), SMALLEST)


def _standard(values: Floats) -> Floats:
    """Return values in standard deviations from their mean; zeros where all are equal."""
    if not len(values) or np.ptp(values) == 0:
        return np.zeros(len(values))
    return np.asarray((values - values.mean()) / values.std())


def nearest(scores: Floats | Vectors, most: int) -> tuple[Numbered, ...]:
    """Return the highest scores above 0, best first, those first seen first among equals."""
    order = np.argsort(-scores, kind="stable")[:most]
    return tuple(Numbered(int(n), float(scores[n])) for n in order if scores[n] > 0)


def _restart(
    index: ScaleIndex, cosines: Floats, matched: Sequence[Numbered], caption_weight: float
) -> Floats:
    """Return where walks begin: entities of matched triples, and a little every caption."""
    restart = np.zeros(index.graph.entities + index.graph.captions)
    restart[: index.graph.entities] = entity_seeds(index.graph.standing, index.ends, matched)
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
