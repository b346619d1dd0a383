"""Results of a search: frozen models, which a machine's state stores as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.asking import Citation, Evidence, ToolName
from domain.base import Frozen
from domain.errors import NotFound
from domain.memories import Edge, Segment
from domain.search import Quote, VideoQuotes, Weighed


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


class Retrieval(Frozen):
    """The result of one search, best evidence first.

    ``focus`` is the segment the search ended on; ``neighbours`` are its one-hop neighbours ranked
    by the query and ``edges`` those between it and them, both directions. ``nothing_close``: no
    evidence is closer than chance; the nearest is still listed. ``searched`` describes the search
    in words, for "not in memory" answers. ``weighed`` are scores by option, of evidence and of what
    else options are compared by; ``quotes`` are what may answer an open question, best first,
    ``by_video`` that in each of a few videos.
    ``unbuilt`` are the titles of videos in view that were left out, since
    the strategy's memory of them is not built. ``writers`` wrote that memory: rules, or models by
    name; only of tools that write in it themselves. ``selected``: of the many videos in view only
    the likeliest were searched. ``unseen``: no image-text model compared pictures.
    """

    mode: ToolName
    query: str
    focus: Segment | None = None
    evidence: tuple[Evidence, ...] = ()
    neighbours: tuple[Segment, ...] = ()
    edges: tuple[Edge, ...] = ()
    images: tuple[ShownImage, ...] = ()
    nothing_close: bool = False
    searched: str = ""
    weighed: tuple[Weighed, ...] = ()
    temperature: float = 1.0
    quotes: tuple[Quote, ...] = ()
    by_video: tuple[VideoQuotes, ...] = ()
    unbuilt: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    selected: bool = False
    unseen: bool = False


class ResolvedRefs(Frozen):
    """Refs resolved to rows, in the given order; ``unknown`` are refs without a row."""

    citations: tuple[Citation, ...] = ()
    unknown: tuple[str, ...] = ()
