"""A text embedder as a llama-index ``BaseEmbedding``, for use with anything of that ecosystem.

llama-index takes seconds to import, so it is imported when an adapter is asked for, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.ports import TextEmbedder, embed_queries

if TYPE_CHECKING:
    from llama_index.core.embeddings import BaseEmbedding


def as_llama_index(embedder: TextEmbedder) -> BaseEmbedding:
    """Wrap ``embedder`` as a llama-index embedding; queries as the model wants them."""
    from llama_index.core.embeddings import BaseEmbedding

    class _Embedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return _floats(embedder.embed([text])[0])

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [_floats(row) for row in embedder.embed(texts)]

        def _get_query_embedding(self, query: str) -> list[float]:
            return _floats(embed_queries(embedder, [query])[0])

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return _Embedding(model_name=embedder.name)


def _floats(row: Any) -> list[float]:
    return [float(value) for value in row]
