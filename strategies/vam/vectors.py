"""What distances between frames are measured on: an image-text model, else colours and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np

from perception.likeness import LIKENESS, likeness

if TYPE_CHECKING:
    from models.ports import Image, ImageEncoder, Vector


class FrameVectors(Protocol):
    """Gives frames their vectors. ``name`` says which they are; only those of one compare."""

    name: str

    def vector(self, image: Image, /) -> Vector:
        """Return the L2-normalised vector of an H x W x 3 BGR image, shape (D,)."""


class LikenessVectors:
    """Histograms of colours and edges (``perception/likeness.py``)."""

    name = LIKENESS

    def vector(self, image: Image, /) -> Vector:
        """Return the vector of an image."""
        return likeness(_rgb(image))


class EncodedVectors:
    """Vectors of the profile's image-text model."""

    def __init__(self, encoder: ImageEncoder) -> None:
        self._encoder, self.name = encoder, encoder.name

    def vector(self, image: Image, /) -> Vector:
        """Return the vector of an image."""
        return np.asarray(self._encoder.images([_rgb(image)])[0], np.float32)


def frame_vectors(encoder: ImageEncoder | None) -> FrameVectors:
    """Return the vectors that a profile has: of its image-text model, else of colours and edges."""
    return LikenessVectors() if encoder is None else EncodedVectors(encoder)


def distance(one: Vector, other: Vector) -> float:
    """Return 1 minus the cosine of two vectors, 0 to 2."""
    return max(0.0, 1.0 - float(one @ other))


def _rgb(image: Image) -> Image:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
