"""The models that searching needs; ``models.toolbox.Toolbox`` has them."""

from __future__ import annotations

from typing import Protocol

from models.ports import ImageEncoder, Reranker, TextEmbedder
from models.sentences import SentenceParser


class TextModels(Protocol):
    """The text encoder of a profile, for lines that it embedded and for all new ones."""

    @property
    def text(self) -> TextEmbedder:
        """Text embeddings."""


class SearchModels(TextModels, Protocol):
    """The models of a search."""

    @property
    def reranker(self) -> Reranker | None:
        """Reads query and passage together, or None where the profile has none."""

    @property
    def sentences(self) -> SentenceParser:
        """Reads sentences; a language without a pipeline it does not."""

    @property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings, or None where the profile has none."""
