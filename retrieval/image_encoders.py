"""The image encoders of a search: each picture is compared with the query by its own encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from domain.errors import HomerError
from domain.memories import Scope
from models.ports import ImageEncoder, Vector
from store.queries.likeness import AlikeKeyframe, keyframes_alike
from store.queries.view_conditions import Reader


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
            self._known[name] = _loaded(self._models, name)
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


def _loaded(models: ImageModels, name: str) -> ImageEncoder | None:
    """Return another image encoder than the profile's; None if it cannot be loaded."""
    if not isinstance(models, ImageEncoderSource):
        return None
    try:
        return models.image_encoder(name)
    except HomerError:
        return None
