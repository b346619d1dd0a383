"""The models that searching needs; ``models.toolbox.Toolbox`` has them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from domain.errors import HomerError
from domain.memories import Scope
from models.ports import ImageEncoder, Reranker, TextEmbedder, Vector, embed_queries
from models.sentences import SentenceParser
from retrieval.lines import Floats, Matrix
from retrieval.relevance import CosineScale, cosine_scale
from store.queries.conditions import Reader
from store.queries.encoders import QueryPart, QueryParts
from store.queries.keyframes import AlikeKeyframe, keyframes_alike


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


# The text encoders of a search: each line is compared with the query by its own encoder.


@runtime_checkable
class EncoderSource(Protocol):
    """Models among which there are other text encoders than the profile's own."""

    def encoder(self, name: str) -> TextEmbedder | None:
        """Return the text encoder with a name in the store; None if it is not known here."""


@dataclass(frozen=True)
class SearchEncoders:
    """The encoders of one search.

    Attributes:
        texts: Those that queries are embedded with, at least one; the first sets the scale.
        scale: The scale of the cosines of a search.
        parts: Their places in the vector of a query; None: all lines in view have one encoder.
        missing: The names of encoders of lines in view that the profile cannot load.
    """

    texts: tuple[TextEmbedder, ...]
    scale: CosineScale
    parts: QueryParts | None = None
    missing: tuple[str, ...] = ()

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """Embed queries, shape (N, D), length 1, with the numbers of all encoders."""
        rows = np.concatenate([embed_queries(text, texts) for text in self.texts], axis=1)
        return np.asarray(rows / np.float32(math.sqrt(len(self.texts))), np.float32)

    def cosine(self, query: Floats, vector: Floats, encoder: str) -> float | None:
        """Return the cosine of a query with a row's vector; None if they cannot be compared.

        Args:
            query: The query's vector, (D,), of ``embed_queries``.
            vector: The row's.
            encoder: The encoder that made it.
        """
        if self.parts is None:
            return float(vector @ query) if vector.shape == query.shape else None
        part = self.parts.part_of(encoder)
        if part is None or vector.shape != (part.size,):
            return None
        product = float(vector @ query[part.place]) * math.sqrt(len(self.texts))
        return part.offset + part.factor * product

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the first encoder."""
        return self.texts[0].languages


def encoder_note(missing: Collection[str]) -> str:
    """Return a note for users about encoders of lines in view that cannot be loaded; or ""."""
    if not missing:
        return ""
    return (
        f"Lines with vectors of {', '.join(sorted(missing))} were found by their words only: this "
        "profile cannot load that encoder. 'homer reembed' makes vectors of its own."
    )


class Encoders:
    """The text encoders of a profile's models, and their scales, each loaded and measured once."""

    def __init__(self, models: TextModels) -> None:
        self._models = models
        self._known: dict[str, TextEmbedder | None] = {}
        self._scales: dict[str, CosineScale] = {}

    def load(self, found: Sequence[str]) -> SearchEncoders:
        """Return the encoders of a search in a view with these, for use outside of transactions.

        Args:
            found: Of ``encoders_in_view``.
        """
        own = self._models.text
        names = sorted(found, key=lambda name: (name != own.name, name))
        loaded = [(name, text) for name in names if (text := self._encoder(name)) is not None]
        missing = tuple(name for name in found if self._encoder(name) is None)
        texts = tuple(text for _, text in loaded) or (own,)
        scale = self.scale(texts[0])
        if not missing and len(texts) == 1:
            return SearchEncoders(texts, scale)
        parts, start = list[QueryPart](), 0
        for text in texts:
            parts.append(self._part(text, start, texts))
            start += text.dimensions
        return SearchEncoders(texts, scale, QueryParts(tuple(parts), scale.unrelated), missing)

    def scale(self, text: TextEmbedder) -> CosineScale:
        """Return the cosine scale of an encoder."""
        if text.name not in self._scales:
            self._scales[text.name] = cosine_scale(text)
        return self._scales[text.name]

    def _encoder(self, name: str) -> TextEmbedder | None:
        if name == self._models.text.name:
            return self._models.text
        if name not in self._known:
            self._known[name] = _loaded(self._models, name)
        return self._known[name]

    def _part(self, text: TextEmbedder, start: int, texts: tuple[TextEmbedder, ...]) -> QueryPart:
        """Return an encoder's part, whose cosines are stretched to the scale of the first one.

        Unrelated sentences and equal ones then have the same cosine with every encoder.
        """
        shared, own = self.scale(texts[0]), self.scale(text)
        stretch = (1 - shared.unrelated) / (1 - own.unrelated)
        # The numbers of each encoder have length 1 / sqrt(encoders) in the vector of a query.
        return QueryPart(
            encoder=text.name,
            start=start,
            size=text.dimensions,
            factor=stretch,
            offset=shared.unrelated - stretch * own.unrelated,
        )


def _loaded(models: TextModels, name: str) -> TextEmbedder | None:
    """Return another text encoder than the profile's; None if it cannot be loaded."""
    if not isinstance(models, EncoderSource):
        return None
    try:
        text = models.encoder(name)
        return text if text is not None and text.dimensions else None
    except HomerError:
        return None


# The image encoders of a search: each picture is compared with the query by its own encoder.


class ImageModels(Protocol):
    """The image encoder of a profile, for pictures that it encoded and for all new ones."""

    @property
    def images(self) -> ImageEncoder | None:
        """Image-text embeddings, or None where the profile has none."""


@runtime_checkable
class ImageEncoderSource(Protocol):
    """Models among which there are other image encoders than the profile's own."""

    def image_encoder(self, name: str) -> ImageEncoder | None:
        """Return the image encoder with a name in the store; None if it is not known here."""


class ImageEncoders:
    """The image encoders of a profile's models, each loaded once.

    A profile without an image encoder loads none: its searches do not compare pictures.

    Args:
        models: Has the profile's own encoder, and perhaps others.
    """

    def __init__(self, models: ImageModels) -> None:
        self._models = models
        self._known: dict[str, ImageEncoder | None] = {}

    @property
    def own(self) -> ImageEncoder | None:
        """The profile's encoder."""
        return self._models.images

    def named(self, name: str) -> ImageEncoder | None:
        """Return the encoder of a name in the store; None if it is unknown or cannot be loaded."""
        own = self.own
        if own is None or name == own.name:
            return own
        if name not in self._known:
            self._known[name] = _loaded_image_encoder(self._models, name)
        return self._known[name]

    def query(self, text: str) -> ImageQuery:
        """Return a text to compare pictures with."""
        return ImageQuery(self, text)


class ImageQuery:
    """A text that pictures of several encoders are compared with; each that is needed embeds it."""

    def __init__(self, encoders: ImageEncoders, text: str) -> None:
        self._encoders, self._text = encoders, text
        self._vectors: dict[str, Vector] = {}

    def cosine(self, vector: Vector, encoder: str) -> float | None:
        """Return the cosine of a picture with the text; None if they cannot be compared.

        Those of other encoders than the profile's are stretched, so that what is close by its own
        encoder is as close as by the profile's.

        Args:
            vector: The picture's, (D,).
            encoder: The name of the encoder that made it.
        """
        own, made_by = self._encoders.own, self._encoders.named(encoder)
        if own is None or made_by is None:
            return None
        if made_by.name not in self._vectors:
            self._vectors[made_by.name] = np.asarray(made_by.text(self._text), np.float32)
        query = self._vectors[made_by.name]
        if query.shape != vector.shape:
            return None
        return float(vector @ query) * own.close / made_by.close


def close_pictures(
    database: Reader, scopes: Sequence[Scope], model: ImageEncoder, vector: Vector, limit: int
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that show what some words say, at most ``limit``, best first.

    ``vector`` is the words', (D,). Those with vectors of another image-text model are left out.
    """
    found = keyframes_alike(database, scopes, vector, limit, encoder=model.name)
    return [one for one in found if one.cosine >= model.close]


def _loaded_image_encoder(models: ImageModels, name: str) -> ImageEncoder | None:
    """Return another image encoder than the profile's; None if it cannot be loaded."""
    if not isinstance(models, ImageEncoderSource):
        return None
    try:
        return models.image_encoder(name)
    except HomerError:
        return None
