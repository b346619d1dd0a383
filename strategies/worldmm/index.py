"""WorldMM's memory of a video as arrays, and what of it may be searched as of a clip.

All that was built of a video is read once and shared by the questions that follow; what a question
may see is chosen from it by the clips from and to which each part holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.built import BuiltMemory, Entity, Node, Relation
from domain.sentences import EntityKind
from retrieval.built_views import BuiltIndexes, holds
from retrieval.signals import WordScores
from retrieval.terms import terms
from store.database import Store
from strategies.asked import Pieces
from strategies.worldmm.captions import MENTIONED, SEMANTIC
from strategies.worldmm.graph import (
    NO_SYNONYMS,
    Flags,
    Pairs,
    ScaleIndex,
    SemanticIndex,
    Synonyms,
    Vectors,
    pairs_of,
    scale_graph,
    semantic_index,
    synonyms,
)
from strategies.worldmm.settings import WorldMemorySettings


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
