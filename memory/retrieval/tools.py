"""The models that searching needs; ``models.toolbox.Toolbox`` has them."""

from __future__ import annotations

from typing import Protocol

from models.ports import ImageEncoder, Reranker


class TextEmbedding(Protocol):
    """The part of llama-index's ``BaseEmbedding`` that searching uses."""

    model_name: str

    def get_query_embedding(self, query: str) -> list[float]:
        """The embedding of a question or a search query."""

    def get_text_embedding(self, text: str) -> list[float]:
        """The embedding of a statement, as memories are embedded."""


class SearchTools(Protocol):
    """``text`` must be the model that the memories were embedded with."""

    @property
    def text(self) -> TextEmbedding:
        """Text embeddings."""

    @property
    def reranker(self) -> Reranker | None:
        """Reads query and passage together, or None where the profile has none."""

    @property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings, or None where the profile has none."""
