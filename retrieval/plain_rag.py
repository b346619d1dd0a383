"""Plain retrieval-augmented generation: the lines nearest to a query by vector.

A baseline without word, time and people signals and without the event graph. It searches the same
vector store that other programs use, and is recorded like any search.
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
from models.ports import TextEmbedder, embed_queries
from retrieval.closeness import CosineScale, closeness_threshold, cosine_scale
from retrieval.line_set import Floats, Matrix
from retrieval.result import Retrieval
from retrieval.vector_store import AS_OF_MS, VIDEO, MemoryVectorStore
from store.database import Store

LINES = 10
"""Lines for a query."""
TEMPERATURE = 0.05
"""Divisor from cosines to logits of the options."""
DIGITS = 4
"""Decimals of recorded cosines."""


class PlainRag:
    """Finds the nearest lines in any mode.

    Args:
        store: The store.
        text: The model that the memory was embedded with.
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
        span: TimeSpan | None = None,  # noqa: ARG002 - there are no images
    ) -> Retrieval:
        """Return the nearest lines not shown yet; see ``Retrievers.search``."""
        query = make_storable(query)
        words = query if aim is None else make_storable(aim.text)
        evidence = self._nearest(view, self._queries([words])[0], seen)
        options = () if aim is None else aim.options
        close = bool(evidence) and evidence[0].score >= closeness_threshold(len(evidence))
        return Retrieval(
            mode=mode,
            query=query,
            evidence=evidence,
            nothing_close=not close,
            searched=f"the {LINES} lines nearest to {query!r}",
            weighed=self._weigh(words, options, evidence),
            temperature=TEMPERATURE,
        )

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """Return the scaled cosine of each passage with a claim, in [0, 1]."""
        if not passages:
            return ()
        vectors = self._embedded([claim, *passages])
        near = self._cosine_scale.nearness
        return tuple(round(near(float(vector @ vectors[0])), DIGITS) for vector in vectors[1:])

    def _queries(self, texts: Sequence[str]) -> Matrix:
        rows = [embed_queries(self._text, [make_storable(text)]) for text in texts]
        return np.concatenate(rows)

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
        result = self._vectors.query(
            VectorStoreQuery(
                query_embedding=vector.tolist(),
                similarity_top_k=LINES + len(seen),
                filters=MetadataFilters(filters=filters),
            )
        )
        near = self._cosine_scale.nearness
        pairs = zip(result.nodes or (), result.similarities or (), strict=True)
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

    def _weigh(
        self, question: str, options: Sequence[str], evidence: Sequence[Evidence]
    ) -> tuple[Weighed, ...]:
        """Score every line by its cosines with the question joined with each option."""
        if not options or not evidence:
            return ()
        claims = self._queries([f"{question} {option}" for option in options])
        cosines = self._embedded([piece.text for piece in evidence]) @ claims.T
        return tuple(
            Weighed(ref=piece.ref, scores=tuple(round(float(value), DIGITS) for value in row))
            for piece, row in zip(evidence, cosines, strict=True)
        )
