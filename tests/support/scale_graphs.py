"""Graphs of a scale of WorldMM, put together caption by caption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from domain.sentences import EntityKind, NamedEntity, Triple
from strategies.worldmm.graph import (
    APART,
    NO_SYNONYMS,
    Numbers,
    Pairs,
    ScaleGraph,
    Synonyms,
    Vectors,
    pairs_of,
    scale_graph,
    synonyms,
)


class GraphParts:
    """Collects the entities, captions and triples of a scale as captions are written."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.kinds: list[EntityKind] = []
        self.triples: dict[Triple, int] = {}
        self._first: dict[Triple, int] = {}
        self.captions = 0
        self._mentions: list[tuple[int, int]] = []
        self._relations: list[tuple[int, int]] = []
        self.alike = NO_SYNONYMS

    def add_caption(self, entities: Iterable[NamedEntity], triples: Sequence[Triple]) -> None:
        """Add the next caption with its entities and triples.

        Raises:
            KeyError: subject or object of a triple is among no caption's entities.
        """
        for name, kind in {entity.name: entity.kind for entity in entities}.items():
            if self.numbers.setdefault(name, len(self.numbers)) == len(self.kinds):
                self.kinds.append(kind)
            self._mentions.append((self.numbers[name], self.captions))
        for triple in triples:
            self._relations.append((self.numbers[triple.subject], self.numbers[triple.object]))
            self.triples.setdefault(triple, len(self.triples))
            self._first.setdefault(triple, self.captions)
        self.captions += 1

    def add_synonyms(self, vectors: Vectors, least: float, known: int = 0) -> None:
        """Join entities from number ``known`` on to those with names alike.

        Args:
            vectors: (E, D), unit rows of the names of all entities by number.
            least: cosine of synonyms.
            known: entities that were joined before.
        """
        apart = np.array([kind in APART for kind in self.kinds], dtype=np.bool_)
        more = synonyms(vectors, least, known=known, apart=apart)
        pairs = np.concatenate([self.alike.pairs, more.pairs])
        self.alike = Synonyms(pairs, np.concatenate([self.alike.cosines, more.cosines]))

    def ends(self) -> Pairs:
        """Return the entities of each triple by its number, (T, 2)."""
        numbered = [(self.numbers[t.subject], self.numbers[t.object]) for t in self.triples]
        return pairs_of(numbered)

    def stated_in(self) -> Numbers:
        """Return the caption that first states each triple by its number, (T,)."""
        return np.array([self._first[triple] for triple in self.triples], dtype=np.int64)

    def graph(self) -> ScaleGraph:
        mentions, relations = pairs_of(self._mentions), pairs_of(self._relations)
        return scale_graph(len(self.numbers), self.captions, mentions, relations, self.alike)
