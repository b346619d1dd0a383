"""Moments of videos: what searches find and answers cite, as every door shows them.

``Retrieval`` and what is in it are stored as JSON in a machine's state.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.asking import Citation, ToolName
from domain.base import Frozen
from domain.errors import NotFound
from domain.memories import Edge, Segment
from domain.people import tags_in_words
from domain.time import TimeSpan, format_clock
from domain.trajectory import Searched
from domain.words import make_storable, one_line


def _is_empty(value: object) -> bool:
    return value in (None, "", ())


Text = Annotated[str, Field(exclude_if=_is_empty)]
"""A text that is left out of JSON where it is empty."""


class Moment(Frozen):
    """A span of a video with what was said, read or seen in it.

    What does not apply to it is left out of JSON.

    Attributes:
        ref: Names it: a line (m12), an event (s3), an image (k7, or f7 for one that a strategy
            kept), or what a strategy built: a node (n2), an entity (e5) or a relation (r4).
        video: The id of the video, and
        title: its title, where they are not those of what it is listed in.
        span: When it is.
        clip: The clip that it is from; None: it is of several.
        kind: Of a line: episodic, or a semantic kind; of a node or relation: its scale or kind.
        source: Of a line: said, read, seen and so on; of a frame: why a strategy kept it.
        text: What was said, read or seen, with names as they are known now.
        label: Of an event: what it is called.
        score: In [0, 1]: how close it is to a query, or how well it supports an answer; None where
            nothing scored it.
        weight: Of a line: how often it was remembered.
        image: The path of an image that shows it, over HTTP; None: none does.
        blob: Of an image: the SHA-256 of its JPEG.
    """

    ref: str
    video: Text = ""
    title: Text = ""
    span: TimeSpan
    clip: int | None = Field(default=None, exclude_if=_is_empty)
    kind: Text = ""
    source: Text = ""
    text: str = ""
    label: Text = ""
    score: float | None = Field(default=None, exclude_if=_is_empty)
    weight: int = Field(default=1, exclude_if=lambda weight: weight == 1)
    image: str | None = Field(default=None, exclude_if=_is_empty)
    blob: str = Field(default="", exclude=True)

    @property
    def number(self) -> int:
        """The number of the row that the ref names."""
        return int(self.ref[1:])

    def in_words(self) -> Self:
        """Return it with words in place of people's tags."""
        words = {"text": tags_in_words(self.text), "label": tags_in_words(self.label)}
        return self.model_copy(update=words)

    def __str__(self) -> str:
        """Return the title, the time and the text."""
        return one_line(
            make_storable(f"{self.title} {format_clock(self.span.start_ms)}: {self.text}")
        )


class Event(Moment):
    """An event of a video, with the edges that lead from it; ``clips`` are those it is of."""

    clips: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()


class MemoryOfMoment(Frozen):
    """What is remembered of a moment by one strategy; without one, what all share.

    Attributes:
        strategy: Its name.
        writers: Who wrote its memory of the video, of what all share the event graph: rules, or
            models by name; empty: not known.
        nodes: What is remembered with a span that holds the moment: lines, captions, events.
        relations: Those that hold at the moment, each with the span in which it was stated: the
            first of ``relations_total``.
        entities: The ends of these relations, by ref.
        frames: Stored images near the moment.
    """

    strategy: str = ""
    writers: tuple[str, ...] = ()
    nodes: tuple[Moment, ...] = ()
    relations: tuple[Moment, ...] = ()
    relations_total: int = 0
    entities: dict[str, str] = Field(default_factory=dict)
    frames: tuple[Moment, ...] = ()


class ShownMoment(Frozen):
    """What is remembered of a moment of a video, and an image of it, where there is one."""

    video: str
    at_ms: int
    memory: tuple[MemoryOfMoment, ...]
    image: Moment | None = None


class SearchCost(Frozen):
    """What a search took of an embeddings endpoint; 0 dollars where no price is known."""

    requests: int
    tokens: int
    cost_usd: float

    def __str__(self) -> str:
        """Return tokens and cost in words; "" without any request."""
        if not self.requests:
            return ""
        least = 1e-6
        cost = f"less than ${least:.6f}" if self.cost_usd < least else f"${self.cost_usd:.6f}"
        return f"{self.tokens:,} tokens{f', {cost}' if self.cost_usd else ''}"


class Found(Frozen):
    """The results of a search, best first.

    Attributes:
        mode: The search mode, or the tool.
        query: What was looked for.
        focus: The event that the search ended on.
        evidence: What was found.
        close: How many of these are close, the first ones; of others the nearest are listed.
        neighbours: Events one edge away from the focus.
        images: The images that the search chose.
        searched: What was searched, in words.
        unbuilt: Titles of videos of which the memory of the tool's strategy is not built, so that
            it was not searched.
        notes: What could not be searched, or only in part.
        cost: Where the text encoder is behind an endpoint.
    """

    mode: ToolName
    query: str
    focus: Moment | None = None
    evidence: tuple[Moment, ...] = ()
    close: int = Field(ge=0)
    neighbours: tuple[Moment, ...] = ()
    images: tuple[Moment, ...] = ()
    searched: str = ""
    unbuilt: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cost: SearchCost | None = None


def image_path(video: str, ref: str) -> str:
    """Return the path over HTTP of the image that a ref names."""
    kind = "frames" if ref.startswith("f") else "keyframes"
    return f"/media/{kind}/{video}/{ref[1:]}"


# Questions that were asked, with their answers, as every door shows them.


class Answered(Frozen):
    """An answer with its citations and cost.

    ``not_in_memory``: the memory does not hold the answer; ``searched`` lists what was searched.
    The score of a citation is how well it supports the answer.
    """

    id: str = Field(description="of the question: GET /questions/{id} has its steps")
    state: str = Field(description="done, or stopped: the best answer so far")
    answer: str
    option: str | None = Field(description="the letter of the chosen option")
    chosen: str | None = Field(description="the chosen option")
    confidence: float = Field(ge=0, le=1)
    confidence_level: str = Field(description="high, medium or low")
    standing: str | None = Field(
        description="supported, weakly supported, or best guess; null if not scored"
    )
    not_in_memory: bool
    note: str = Field(description="limitations of the models, in plain words")
    citations: tuple[Moment, ...]
    retrieved: tuple[Moment, ...]
    searched: tuple[str, ...]
    rounds: int
    tokens: int
    seconds: float
    choice: str | None = Field(
        default=None, description="how `auto` chose the strategy; null where it was named"
    )


class RoundLine(Frozen):
    """A round of a search in a line, and its query."""

    number: int
    headline: str
    subtask: str
    mode: str | None
    query: str
    found: int


class Asked(Frozen):
    """A question, its videos and time, and the state of its run.

    What follows ``answer`` is there where one question is shown alone.
    """

    id: str
    question: str
    videos: tuple[str, ...]
    options: tuple[str, ...]
    as_of_ms: int | None
    profile: str
    strategy: str
    state: str = Field(description="running, done, stopped or failed")
    asked_at: datetime = Field(description="time by the server's clock, UTC")
    seconds: float
    fork: str = Field(default="", description="of what it is a fork, and what was changed")
    answer: str | None
    at_work: bool = Field(default=False, description="its run is in progress")
    rounds: tuple[RoundLine, ...] = ()
    result: Answered | None = Field(default=None, description="the answer with its citations")
    errors: tuple[str, ...] = ()
    choice: str | None = Field(
        default=None, description="how `auto` chose the strategy; null where it was named"
    )
    steps: tuple[str, ...] = Field(default=(), description="every step that says something new")

    def __str__(self) -> str:
        """Return the question and a line for each step."""
        lines = [f"{self.id} ({self.state}): {self.question}", *self.steps]
        return "\n".join(one_line(make_storable(line)) for line in lines)


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


class Retrieval(Searched):
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
