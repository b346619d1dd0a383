"""Moments of videos: what searches find and answers cite, as every door shows them."""

from __future__ import annotations

from pydantic import Field

from domain.asking import ToolName
from domain.base import Frozen
from domain.texts import make_storable, one_line
from domain.time import TimeSpan, format_clock


class Moment(Frozen):
    """A span of a video with what was said, read or seen in it.

    Attributes:
        ref: Names it: a line (m12), an event (s3), an image (k7, or f7 for one that a strategy
            kept), or what a strategy built: a node (n2), an entity (e5) or a relation (r4).
        video: The id of the video.
        title: Its title.
        span: When it is.
        clip: The clip that it is from; None: it is of several.
        text: What was said, read or seen, with names as they are known now.
        label: Of an event: what it is called.
        score: In [0, 1]: how close it is to a query, or how well it supports an answer; None where
            nothing scored it.
        image: The path of an image that shows it, over HTTP; None: none does.
    """

    ref: str
    video: str
    title: str
    span: TimeSpan
    clip: int | None = None
    text: str
    label: str = ""
    score: float | None = None
    image: str | None = None

    def __str__(self) -> str:
        """Return the title, the time and the text."""
        return one_line(
            make_storable(f"{self.title} {format_clock(self.span.start_ms)}: {self.text}")
        )


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
