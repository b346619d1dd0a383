"""The models that memory needs; a ``Toolbox`` has them."""

from __future__ import annotations

from typing import Protocol

from models.ports import TextEmbedder


class FaceThreshold(Protocol):
    """What memory asks of a face engine."""

    @property
    def same_person(self) -> float:
        """The cosine from which two faces are of one person."""


class VoiceThreshold(Protocol):
    """What memory asks of a speaker encoder."""

    @property
    def same_speaker(self) -> float:
        """The cosine from which two voices are of one speaker."""


class MemoryModels(Protocol):
    """Text vectors, and the thresholds that faces and voices are matched by."""

    @property
    def text(self) -> TextEmbedder:
        """Sentence embeddings."""

    @property
    def faces(self) -> FaceThreshold:
        """Its threshold for the same person."""

    @property
    def speaker(self) -> VoiceThreshold:
        """Its threshold for the same speaker."""
