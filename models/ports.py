"""The interfaces of models, and what memory needs of them. Adapters live beside.

Language models are LangChain chat models (``models.chat``); the rest are the protocols below. A
text embedder becomes a llama-index ``BaseEmbedding`` by ``models.text_embedding``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""H x W x 3, RGB, 0-255."""

Samples = NDArray[np.float32]
"""Mono audio at 16 kHz, values in [-1, 1]."""

Vector = NDArray[np.float32]
"""L2-normalised embedding, shape (D,)."""


@dataclass(frozen=True)
class Word:
    """A recognised word, with the space before it; milliseconds from the start of the samples."""

    start_ms: int
    end_ms: int
    text: str


@dataclass(frozen=True)
class Speech:
    """Recognised speech: at least one word, in order; ``confidence`` is in [0, 1].

    A recogniser without times of words gives one "word" for all of a sentence. One without text
    says that somebody speaks there, and that it could not be recognised.
    """

    words: tuple[Word, ...]
    language: str
    confidence: float

    @property
    def text(self) -> str:
        """All words as one text, with the language's own spaces."""
        return "".join(word.text for word in self.words).strip()


@dataclass(frozen=True)
class Face:
    """A detected face. ``quality`` is the norm of the raw embedding where the model gives one."""

    box: tuple[int, int, int, int]
    score: float
    quality: float
    vector: Vector


@dataclass(frozen=True)
class TextLine:
    """A line of text found on an image; ``score`` in [0, 1]."""

    box: tuple[int, int, int, int]
    text: str
    score: float


@dataclass(frozen=True)
class Thing:
    """A thing found on an image, by the name of its kind; ``score`` in [0, 1]."""

    box: tuple[int, int, int, int]
    label: str
    score: float


class SpeechRecognizer(Protocol):
    """Speech to text with word times. ``languages``: codes of those it writes down as spoken."""

    name: str
    languages: tuple[str, ...]

    def transcribe(self, samples: Samples) -> list[Speech]:
        """Transcribe ``samples`` deterministically; return an empty list if nobody speaks."""


class VoiceActivity(Protocol):
    """Voice activity detection."""

    def spans(self, samples: Samples) -> list[tuple[int, int]]:
        """Return spans of speech in milliseconds, in order, disjoint."""


class SoundClassifier(Protocol):
    """Kinds of sound. ``window`` and ``hop`` in samples: windows start every ``hop``."""

    name: str
    labels: tuple[str, ...]
    window: int
    hop: int

    def scores(self, samples: Samples) -> NDArray[np.float32]:
        """Score windows: shape (N, number of labels), in [0, 1]; the last ends with ``samples``."""


class FaceEngine(Protocol):
    """Face detection with embeddings.

    Each model has its own numbers: ``same_person`` is its cosine threshold, ``min_score`` what it
    takes for a face (nothing below is returned), ``min_quality`` what an exemplar should have.
    """

    name: str
    same_person: float
    min_score: float
    min_quality: float

    def faces(self, image: Image) -> list[Face]:
        """Detect faces, best score first; boxes are clipped to the image."""


class SpeakerEncoder(Protocol):
    """Speaker embeddings, for several threads at once.

    ``same_speaker`` is the model's own cosine threshold.
    """

    name: str
    same_speaker: float

    def embed(self, samples: Samples) -> Vector:
        """Embed the voice of at least 0.4 s of speech."""


class ScreenReader(Protocol):
    """Text on images, for several threads at once."""

    name: str

    def read(self, image: Image) -> list[TextLine]:
        """Return lines of text, in reading order."""


class ObjectDetector(Protocol):
    """Things on images. Of ``labels`` only; nothing below its own ``min_score`` is returned."""

    name: str
    min_score: float
    labels: tuple[str, ...]

    def objects(self, image: Image) -> list[Thing]:
        """Detect objects, best score first; boxes are clipped to the image."""


class TextEmbedder(Protocol):
    """Sentence embeddings. A text's row depends on that text only, bit for bit.

    ``languages``: codes of those whose sentences it was made for; empty: not known.
    """

    name: str
    languages: tuple[str, ...]

    @property
    def dimensions(self) -> int:
        """The size of a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: one L2-normalised row a text, shape (N, dimensions)."""


@runtime_checkable
class QueryEmbedder(Protocol):
    """A text embedder that reads what is searched for in another way than what is stored."""

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to search for: rows as of ``TextEmbedder.embed``."""


def embed_queries(text: TextEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts to search for, shape (N, dimensions), as the model wants queries."""
    return text.embed_queries(texts) if isinstance(text, QueryEmbedder) else text.embed(texts)


class Reranker(Protocol):
    """Relevance of passages to a query by reading both together."""

    name: str

    def scores(self, query: str, passages: list[str]) -> NDArray[np.float32]:
        """Score passages in (0, 1), shape (N,); higher is more relevant."""


class ImageEncoder(Protocol):
    """Image-text embeddings, where a profile has such a model.

    ``close`` is the model's own cosine from which an image shows what a text says.
    """

    name: str
    close: float

    def images(self, images: list[Image]) -> NDArray[np.float32]:
        """Embed images: one L2-normalised row an image, shape (N, D)."""

    def text(self, text: str) -> Vector:
        """Embed a text in the same space."""


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
