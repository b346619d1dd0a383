"""Results of a search: frozen models, which a machine's state stores as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.asking import Citation
from domain.base import Frozen
from domain.errors import NotFound
from domain.memories import Edge, Segment
from domain.search import SearchOutcome


class UnknownLabel(NotFound):
    """NEIGHBOR was called with a label that no neighbour has; ``valid`` are the existing labels."""

    def __init__(self, label: str, valid: tuple[str, ...]) -> None:
        self.label, self.valid = label, valid
        choices = "; ".join(valid) or "none: this segment has no edges yet"
        super().__init__(f"no neighbour is called {label!r}. Neighbours: {choices}")


class ShownImage(Frozen):
    """An image that a search chose. ``blob`` is the SHA-256 of its JPEG in the blob store.

    ``kind``: a keyframe (``k``) or a frame that a strategy kept (``f``).
    """

    kind: Literal["k", "f"] = "k"
    id: PositiveInt
    video: str
    clip: NonNegativeInt
    time_ms: NonNegativeInt
    blob: str
    description: str = Field(description="for models without eyes: what is known to be on it")
    score: float = Field(ge=0, le=1)

    @property
    def ref(self) -> str:
        """The ref that cites this image, without brackets."""
        return f"{self.kind}{self.id}"


class Retrieval(SearchOutcome):
    """The result of one search.

    ``focus`` is the segment the search ended on; ``neighbours`` are its one-hop neighbours ranked
    by the query and ``edges`` those between it and them, both directions. ``unseen``: no image-text
    model compared pictures.
    """

    focus: Segment | None = None
    neighbours: tuple[Segment, ...] = ()
    edges: tuple[Edge, ...] = ()
    images: tuple[ShownImage, ...] = ()
    unseen: bool = False


class ResolvedRefs(Frozen):
    """Refs resolved to rows, in the given order; ``unknown`` are refs without a row."""

    citations: tuple[Citation, ...] = ()
    unknown: tuple[str, ...] = ()
