"""WorldMM's memory of a video as arrays, and as the graph of each scale that searches walk.

An entity is joined to the captions that it stands in, the subject of a triple to its object, and
entities whose names are alike to each other. Parts are added as captions are written; the graph for
searches is made of their arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.built import BuiltMemory, Entity, Node, Relation
from domain.sentences import EntityKind
from retrieval.built_views import BuiltIndexes, holds
from retrieval.page_rank import WeightedGraph, page_rank, weighted_graph
from retrieval.relevance import standardise
from retrieval.signals import WordScores
from retrieval.terms import terms
from store.database import Store
from strategies.asked import Pieces
from strategies.worldmm.captions import MENTIONED, SEMANTIC
from strategies.worldmm.settings import WorldMemorySettings

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
    found = list[tuple[Pairs, Floats]]()
    for start in range(known, len(vectors), BLOCK):
        new_block = vectors[start : start + BLOCK]
        near = new_block @ vectors[: start + len(new_block)].T
        rows, columns = np.nonzero(near >= least)
        earlier = columns < rows + start
        rows, columns = rows[earlier], columns[earlier]
        columns_and_rows = np.stack([columns, rows + start], axis=1).astype(np.int64)
        found.append((columns_and_rows, np.minimum(near[rows, columns], 1.0).astype(np.float64)))
    if not found:
        return NO_SYNONYMS
    pairs = np.concatenate([block for block, _ in found])
    cosines = np.concatenate([block for _, block in found])
    joined = np.ones(len(pairs), dtype=np.bool_) if apart is None else ~apart[pairs].all(axis=1)
    return Synonyms(pairs[joined], cosines[joined])


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
    return np.array(numbers, dtype=np.int64).reshape(-1, 2)


# Finds captions of one scale by its graph; pure.
#
# The triples nearest to the query seed a Personalized PageRank with their entities; captions join
# the restart with little weight by their own likeness to the query. Where no language model chooses
# among what is found, captions are ranked by their words and by their own and their triples'
# likeness as well, since PageRank alone finds hardly more than likeness does (docs/strategies.md).

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
    # Where walks begin: entities of matched triples, and a little every caption.
    restart = np.zeros(index.graph.entities + index.graph.captions)
    restart[: index.graph.entities] = entity_seeds(index.graph.standing, index.ends, matched)
    restart[index.graph.entities :] = settings.caption_weight * _unit_range(cosines)
    ranks = page_rank(index.graph.graph, restart, settings.damping)[index.graph.entities :]
    if words is not None:
        # The cosine of each caption's triple that is nearest to the query, (C,); or 0.
        stated = np.zeros(index.graph.captions)
        np.maximum.at(stated, index.stated_in, index.triple_vectors @ query)
        ranks = _together([*signals, stated], _unit_range(ranks))
    return ScaleFound(nearest(ranks, most), matched)


def _together(signals: Sequence[Floats], rank: Floats | float = 0.0) -> Floats:
    """Add standardised signals and a rank in [0, 1]; return the sums in (0, 1], (C,)."""
    summed = np.sum([standardise(signal) for signal in signals], axis=0) + rank
    return np.maximum(_unit_range(summed), SMALLEST)


def nearest(scores: Floats | Vectors, most: int) -> tuple[Numbered, ...]:
    """Return the highest scores above 0, best first, those first seen first among equals."""
    order = np.argsort(-scores, kind="stable")[:most]
    return tuple(Numbered(int(n), float(scores[n])) for n in order if scores[n] > 0)


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


# Finds semantic triples by the graph of their entities; pure.
#
# The triples nearest to the query seed a Personalized PageRank with their entities; a triple scores
# the sum of its two ends.


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


# All that was built of a video is read once and shared by the questions that follow; what a
# question may see is chosen from it by the clips from and to which each part holds.


@dataclass(frozen=True, eq=False)
class ScaleView:
    """A scale as of a clip: what is searched, and nodes and triples by their number in it."""

    index: ScaleIndex
    nodes: Sequence[Node]
    triples: Sequence[Relation]
    pieces: Pieces


class WorldIndex:
    """What was built of one video."""

    def __init__(self, built: BuiltMemory, settings: WorldMemorySettings) -> None:
        self._built, self._settings = built, settings
        self.entities: Sequence[Entity] = built.entities
        self._rows = {entity.key: row for row, entity in enumerate(built.entities)}
        vectors = [row.vector for row in built.nodes] + [row.vector for row in built.entities]
        self._width = next((len(vector) for vector in vectors if vector is not None), 0)

    @cached_property
    def _alike(self) -> Synonyms:
        """Return the entities whose names are alike, over all that was built."""
        if not self.entities:
            return NO_SYNONYMS
        vectors = self._stacked([entity.vector for entity in self.entities])
        apart = np.array([e.key.type == EntityKind.PERSON for e in self.entities], dtype=np.bool_)
        return synonyms(vectors, self._settings.synonym_cosine, apart=apart)

    @property
    def encoder(self) -> str:
        """Return the text encoder that made the vectors; "" if nothing was built."""
        return self._built.encoder

    def levels(self) -> tuple[str, ...]:
        """Return the levels of the captions, finest first."""
        found = {node.level for node in self._built.nodes}
        return tuple(sorted(found, key=lambda level: int(level.split()[0])))

    def scale(self, level: str, last_clip: int) -> ScaleView:
        nodes = [
            node for node in self._built.nodes if node.level == level and holds(node, last_clip)
        ]
        numbers = {(node.level, node.number): row for row, node in enumerate(nodes)}
        relations = [
            one
            for one in self._built.relations
            if one.level == level and one.node in numbers and holds(one, last_clip)
        ]
        stated = [one for one in relations if one.predicate != MENTIONED]
        mentions = {
            (self._rows[end], numbers[one.node])
            for one in relations
            if one.node is not None
            for end in (one.subject, one.object)
        }
        ends = self._ends(stated)
        graph = scale_graph(
            len(self.entities),
            len(nodes),
            pairs_of(sorted(mentions)),
            ends,
            self._alike_by(last_clip),
        )
        index = ScaleIndex(
            graph,
            self._stacked([node.vector for node in nodes]),
            self._stacked([one.vector for one in stated]),
            ends,
            np.array([numbers[one.node] for one in stated if one.node is not None], np.int64),
        )
        pieces = Pieces(
            [node.ref for node in nodes],
            [node.text for node in nodes],
            [node.span for node in nodes],
            index.caption_vectors,
            [WordScores([self._words[node.text] for node in nodes])],
        )
        return ScaleView(index, nodes, stated, pieces)

    def semantic(self, last_clip: int) -> tuple[SemanticIndex, list[Relation]]:
        """Return what is searched of the relations that last as of a clip, and these by number."""
        relations = [
            one for one in self._built.relations if one.level == SEMANTIC and holds(one, last_clip)
        ]
        vectors = self._stacked([one.vector for one in relations])
        ends, alike = self._ends(relations), self._alike_by(last_clip)
        return semantic_index(len(self.entities), ends, vectors, alike), relations

    @cached_property
    def _words(self) -> dict[str, list[str]]:
        """Return the search terms of each caption, by its text."""
        return {node.text: terms(node.text) for node in self._built.nodes}

    def _alike_by(self, last_clip: int) -> Synonyms:
        known = np.array([e.from_clip <= last_clip for e in self.entities], dtype=np.bool_)
        both: Flags = np.asarray(known[self._alike.pairs].all(axis=1))
        return Synonyms(self._alike.pairs[both], self._alike.cosines[both])

    def _stacked(self, vectors: Sequence[NDArray[np.float32] | None]) -> Vectors:
        """Stack vectors to rows; a missing one is zero."""
        stacked = np.zeros((len(vectors), self._width), dtype=np.float32)
        for row, vector in enumerate(vectors):
            if vector is not None:
                stacked[row] = vector
        return stacked

    def _ends(self, relations: Sequence[Relation]) -> Pairs:
        return pairs_of([(self._rows[one.subject], self._rows[one.object]) for one in relations])


class WorldIndexes(BuiltIndexes[WorldIndex]):
    """The indexes of the videos asked about last.

    Args:
        store: the store.
        builder: the name under which the memory was built.
        settings: the numbers.
    """

    def __init__(self, store: Store, builder: str, settings: WorldMemorySettings) -> None:
        super().__init__(store, builder, lambda built: WorldIndex(built, settings))
