"""The lines nearest to a query by vector, from the vector store that other programs use too.

Importing this module imports llama-index, which takes seconds: import it where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from agent.strategy import ToolUse
from domain.asking import Evidence, Weighed
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.words import make_storable
from models.ports import embed_queries
from retrieval.preparation import TextModels, require_text_encoder
from retrieval.relevance import closeness_threshold, cosine_scale
from retrieval.vector_store import AS_OF_MS, VIDEO, MemoryVectorStore
from strategies.plain_rag.strategy import NAME, NearestArguments

if TYPE_CHECKING:
    from store.database import Store

TEMPERATURE = 0.05
"""Divisor from cosines to logits of the options."""
DIGITS = 4
"""Decimals of recorded cosines."""


class NearestLines:
    """Finds the lines nearest to a query.

    Args:
        models: Has the text encoder that the memory was embedded with.
    """

    def __init__(self, store: Store, models: TextModels) -> None:
        self._store, self._models = store, models

    def __call__(self, view: MemoryView, arguments: NearestArguments, use: ToolUse) -> Retrieval:
        """Return the nearest lines not shown yet, scored by option if there are any."""
        query = make_storable(arguments.query)
        with self._store.begin() as session:
            require_text_encoder(session, self._models.text)
        (vector,) = embed_queries(self._models.text, [query])
        filters: list[MetadataFilter | MetadataFilters] = [
            MetadataFilter(key=VIDEO, value=[*view.videos], operator=FilterOperator.IN)
        ]
        if view.as_of_ms is not None:
            filters.append(MetadataFilter(key=AS_OF_MS, value=view.as_of_ms))
        result = MemoryVectorStore(self._store).query(
            VectorStoreQuery(
                query_embedding=vector.tolist(),
                similarity_top_k=arguments.lines + len(use.seen),
                filters=MetadataFilters(filters=filters),
            )
        )
        near = cosine_scale(self._models.text).nearness
        pairs = zip(result.nodes or (), result.similarities or (), strict=True)
        fresh = [(node, score) for node, score in pairs if node.node_id not in use.seen]
        evidence = tuple(
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
            for node, score in fresh[: arguments.lines]
        )
        close = bool(evidence) and evidence[0].score >= closeness_threshold(len(evidence))
        return Retrieval(
            mode=NAME,
            query=query,
            evidence=evidence,
            nothing_close=not close,
            searched=f"the {arguments.lines} lines nearest to {query!r}",
            weighed=self._weigh(query, arguments.options, evidence),
            temperature=TEMPERATURE,
        )

    def _weigh(
        self, question: str, options: Sequence[str], evidence: Sequence[Evidence]
    ) -> tuple[Weighed, ...]:
        """Score every line by its cosines with the question joined with each option."""
        if not options or not evidence:
            return ()
        texts = [f"{question} {option}" for option in options]
        rows = [embed_queries(self._models.text, [make_storable(text)]) for text in texts]
        claims = np.concatenate(rows)
        embed = self._models.text.embed
        vectors = (embed([make_storable(piece.text)])[0] for piece in evidence)
        return tuple(
            Weighed(
                ref=piece.ref, scores=tuple(round(float(one), DIGITS) for one in claims @ vector)
            )
            for piece, vector in zip(evidence, vectors, strict=True)
        )
