"""The models that memory needs; a ``Toolbox`` has them."""

from __future__ import annotations

from typing import Protocol

from models.ports import FaceEngine, SpeakerEncoder, TextEmbedder


class Tools(Protocol):
    """Text vectors, and the thresholds that faces and voices are matched by."""

    @property
    def text(self) -> TextEmbedder:
        """Sentence embeddings."""

    @property
    def faces(self) -> FaceEngine:
        """Its threshold for the same person."""

    @property
    def speaker(self) -> SpeakerEncoder:
        """Its threshold for the same speaker."""
