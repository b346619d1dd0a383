"""The arguments of VAM's tools; unknown keys are refused."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from agent.strategy import Options, ToolArguments
from domain.base import Frozen
from strategies.vam.times import TimeRange

THRESHOLD = 0.65
"""The least score of what a language model's queries find."""
DAY_S = 86_400
MOST_INSPECTED = 16
"""Frames that are looked at at a time."""
Ref = Annotated[str, StringConstraints(pattern=r"^[nf][1-9]\d{0,17}$")]
"""A result of an earlier search: a document (n12) or a frame (f7)."""


class Source(StrEnum):
    """What a search finds."""

    FRAME = "frame"
    EVENT = "event"
    SUMMARY = "summary"


class SearchQuery(Frozen):
    """One of the queries of a search."""

    q: str = Field(min_length=1, description="what is looked for")
    top_k: int = Field(default=10, ge=1, le=200)
    inspect_k: int = Field(default=0, ge=0, le=50, description="of those, whose frames are shown")
    threshold: float = Field(default=THRESHOLD, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _inspected_are_found(self) -> Self:
        if self.inspect_k > self.top_k:
            raise ValueError("inspect_k is more than top_k")
        return self


class SearchArguments(ToolArguments):
    """What to look for, and when.

    ``query`` alone finds the best whatever its score. ``sources``: empty for all that there are.
    ``visual_ref`` finds frames that look like that result. ``joint``: what is inspected is looked
    at together, with ``question``. ``options`` are to score by what is found, if any.
    """

    queries: tuple[SearchQuery, ...] = Field(default=(), max_length=8)
    sources: tuple[Source, ...] = ()
    times: TimeRange | None = None
    visual_ref: Ref | None = None
    joint: bool = False
    question: str = ""
    options: Options = ()

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        if not (self.query or self.queries or self.times or self.visual_ref):
            raise ValueError("name a query, queries, times or visual_ref")
        return self

    def all_queries(self) -> tuple[SearchQuery, ...]:
        """Return the queries; that of ``query`` first, if there is one."""
        if not self.query:
            return self.queries
        return (SearchQuery(q=self.query, threshold=0.0), *self.queries)


class FrameArguments(ToolArguments):
    """What frames are to show, and how many are found at most."""

    query: str = Field(min_length=1)
    top_k: int = Field(default=10, ge=1, le=200)


class InspectArguments(ToolArguments):
    """Frames of a span or of earlier results, looked at with a question."""

    refs: tuple[Ref, ...] = Field(default=(), max_length=MOST_INSPECTED)
    start_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    frames: int = Field(default=MOST_INSPECTED, ge=1, le=MOST_INSPECTED)
    joint: bool = True

    @model_validator(mode="after")
    def _something_is_named(self) -> Self:
        check_order(self.start_s, self.end_s)
        if not self.refs and self.start_s is None:
            raise ValueError("name refs of earlier results, or start_s and end_s")
        return self


class SummarizeArguments(ToolArguments):
    """A span in windows of one length, each summarised.

    ``query`` is the prompt; summaries of one ``structure`` are comparable.
    """

    start_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    granularity_s: float = Field(default=DAY_S, gt=0, le=DAY_S, allow_inf_nan=False)
    structure: str = Field(default="overview", pattern=r"^[a-z][a-z0-9_]{0,30}$")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        check_order(self.start_s, self.end_s)
        return self


def check_order(start_s: float | None, end_s: float | None) -> None:
    """Check that both ends of a span are named or none, in order.

    Raises:
        ValueError: they are not.
    """
    if (start_s is None) != (end_s is None):
        raise ValueError("name both start_s and end_s, or none")
    if start_s is not None and end_s is not None and end_s <= start_s:
        raise ValueError("end_s is not after start_s")
