"""The text encoders of a search: each line is compared with the query by its own encoder."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from domain.errors import HomerError
from models.ports import TextEmbedder, embed_queries
from retrieval.closeness import CosineScale, cosine_scale
from retrieval.line_set import Floats, Matrix
from retrieval.ports import TextModels
from store.queries.encoders import QueryPart, QueryParts


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
