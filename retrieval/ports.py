"""The models that searching needs; ``models.toolbox.Toolbox`` has them."""

from __future__ import annotations

from typing import Protocol

from models.ports import ImageEncoder, Reranker, TextEmbedder


class SearchModels(Protocol):
    """``text`` must be the model that the memories were embedded with."""

    @property
    def text(self) -> TextEmbedder:
        """Text embeddings."""

    @property
    def reranker(self) -> Reranker | None:
        """Reads query and passage together, or None where the profile has none."""

    @property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings, or None where the profile has none."""
