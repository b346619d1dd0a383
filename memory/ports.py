"""Ports to the models that memory needs; a ``Toolbox`` implements them."""

from __future__ import annotations

from typing import Protocol

from models.ports import TextEmbedder


class FaceThreshold(Protocol):
    """The part of a face model that memory uses."""

    @property
    def same_person(self) -> float:
        """The least cosine of two faces of one person."""


class VoiceThreshold(Protocol):
    """The part of a speaker encoder that memory uses."""

    @property
    def same_speaker(self) -> float:
        """The least cosine of two voices of one speaker."""


class MemoryModels(Protocol):
    """The text embedder, and the thresholds for matching faces and voices."""

    @property
    def text(self) -> TextEmbedder:
        """Sentence embeddings."""

    @property
    def faces(self) -> FaceThreshold:
        """The threshold for faces."""

    @property
    def speaker(self) -> VoiceThreshold:
        """The threshold for voices."""
