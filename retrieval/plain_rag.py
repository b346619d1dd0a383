"""Plain retrieval-augmented generation: the lines nearest to a query, and nothing else.

The baseline that the machine is compared with: no words, no time, no people, no event graph. It
searches through the same vector store that other programs use, and is recorded like any search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from domain.asking import Evidence, Mode
from domain.memories import MemoryView
from domain.search import Aim, Weighed
from domain.texts import make_storable
from domain.time import TimeSpan
from models.ports import TextEmbedder
from retrieval.closeness import CosineScale, cosine_scale, least
from retrieval.line_set import Floats, Matrix
from retrieval.result import Retrieval
from retrieval.vector_store import AS_OF_MS, VIDEO, MemoryVectorStore
from store.database import Store

LINES = 10
"""Lines for a query."""
TEMPERATURE = 0.05
"""What cosines of a line with options are divided by to be logits."""
DIGITS = 4
"""Decimals of cosines on record."""


class PlainRag:
    """Finds the nearest lines, whatever the mode.

    Args:
        store: the store.
        text: the model that the memory was embedded with.
    """

    def __init__(self, store: Store, text: TextEmbedder) -> None:
        self._vectors, self._text = MemoryVectorStore(store), text

    @cached_property
    def _cosine_scale(self) -> CosineScale:
        return cosine_scale(self._text)

    def search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None = None,  # noqa: ARG002 - there are no segments
        seen: frozenset[str] = frozenset(),
        aim: Aim | None = None,
    ) -> Retrieval:
        """Return the nearest lines not shown yet; see ``Retrievers.search``."""
        query = make_storable(query)
        words = query if aim is None else make_storable(aim.text)
        evidence = self._nearest(view, self._embedded([words])[0], seen)
        options = () if aim is None else aim.options
        close = bool(evidence) and evidence[0].score >= least(len(evidence))
        return Retrieval(
            mode=mode,
            query=query,
            evidence=evidence,
            nothing_close=not close,
            searched=f"the {LINES} lines nearest to {query!r}",
            weighed=self._weighed(words, options, evidence),
            temperature=TEMPERATURE,
        )

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """Return how near each passage is to a claim, in [0, 1]."""
        if not passages:
            return ()
        vectors = self._embedded([claim, *passages])
        near = self._cosine_scale.nearness
        return tuple(round(near(float(one @ vectors[0])), DIGITS) for one in vectors[1:])

    def _embedded(self, texts: Sequence[str]) -> Matrix:
        return np.concatenate([self._text.embed([make_storable(text)]) for text in texts])

    def _nearest(
        self, view: MemoryView, vector: Floats, seen: frozenset[str]
    ) -> tuple[Evidence, ...]:
        filters: list[MetadataFilter | MetadataFilters] = [
            MetadataFilter(key=VIDEO, value=[*view.videos], operator=FilterOperator.IN)
        ]
        if view.as_of_ms is not None:
            filters.append(MetadataFilter(key=AS_OF_MS, value=view.as_of_ms))
        found = self._vectors.query(
            VectorStoreQuery(
                query_embedding=vector.tolist(),
                similarity_top_k=LINES + len(seen),
                filters=MetadataFilters(filters=filters),
            )
        )
        near = self._cosine_scale.nearness
        pairs = zip(found.nodes or (), found.similarities or (), strict=True)
        fresh = [(node, score) for node, score in pairs if node.node_id not in seen]
        return tuple(
            Evidence(
                ref=node.node_id,
                video=node.metadata[VIDEO],
                span=TimeSpan.of(
                    node.metadata["start_ms"],
                    max(node.metadata["start_ms"], node.metadata["end_ms"]),
                ),
                text=node.get_content(),
                score=near(score),
                clip=node.metadata["clip"],
            )
            for node, score in fresh[:LINES]
        )

    def _weighed(
        self, question: str, options: Sequence[str], evidence: Sequence[Evidence]
    ) -> tuple[Weighed, ...]:
        """Weigh every line by its cosine with the question and each option."""
        if not options or not evidence:
            return ()
        claims = self._embedded([f"{question} {option}" for option in options])
        cosines = self._embedded([one.text for one in evidence]) @ claims.T
        return tuple(
            Weighed(ref=one.ref, scores=tuple(round(float(value), DIGITS) for value in row))
            for one, row in zip(evidence, cosines, strict=True)
        )
