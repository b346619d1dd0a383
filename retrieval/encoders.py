"""The models that searching needs; ``models.toolbox.Toolbox`` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.errors import InputError
from domain.memories import Scope
from models.ports import ImageEncoder, Reranker, TextEmbedder, Vector
from models.sentences import SentenceParser
from store.queries.conditions import Reader
from store.queries.encoders import encoders_of_library, is_of_library
from store.queries.keyframes import AlikeKeyframe, keyframes_alike


class TextModels(Protocol):
    """The text encoder of a library."""

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


def require_text_encoder(database: Reader, text: TextEmbedder) -> None:
    """Check that a text encoder made the vectors of the library.

    Raises:
        InputError: another one did.
    """
    if not is_of_library(database, text.name):
        known = encoders_of_library(database).text
        raise InputError(
            f"the texts of this library have vectors of {known}, and this profile searches with "
            f"{text.name}: take a profile with {known}, or change the library with 'homer reembed'"
        )


def image_encoder(database: Reader, model: ImageEncoder | None) -> ImageEncoder | None:
    """Return an image-text model if it made the vectors of the library's pictures, else None."""
    if model is None or not is_of_library(database, model.name, images=True):
        return None
    return model


def close_pictures(
    database: Reader, scopes: Sequence[Scope], model: ImageEncoder, vector: Vector, limit: int
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that show what some words say, at most ``limit``, best first.

    ``vector`` is the words', (D,), by ``model``, which made the vectors of the library.
    """
    found = keyframes_alike(database, scopes, vector, limit, shown=True)
    return [one for one in found if one.cosine >= model.close]
