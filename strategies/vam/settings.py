"""The numbers of VAM (the paper's where it has some), its parts, and its tools' arguments."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, PositiveInt, StringConstraints, model_validator

from agent.strategy import Options, ToolArguments
from domain.base import Frozen
from strategies.vam.times import TimeRange

# The numbers of Visual Agentic Memory, with the paper's defaults where it has them.

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""


class AgeTier(Frozen):
    """What happens to frames from an age on.

    One frame in ``every_ms`` stays, with ``side`` pixels at most and this JPEG quality.
    """

    from_age_ms: PositiveInt
    every_ms: PositiveInt
    side: PositiveInt
    quality: int = Field(ge=1, le=100)


class VisualMemorySettings(Frozen, allow_inf_nan=False):
    """Settings of what is kept of a stream's pictures; differences are of grey values, 0 to 255.

    Gates: a frame is dropped under ``least_sharpness`` (variance of the Laplacian), under
    ``least_change`` (mean absolute difference to the last frame that passed), from
    ``most_similarity`` on (structural similarity, -1 to 1) and under ``least_histogram_change`` (1
    minus the correlation of grey histograms; 0: off). The last three are measured on
    ``plane_side`` pixels.

    Distances are 1 minus cosines. ``moment_distance`` and ``event_distance`` hold until there are
    ``least_distances``; then Otsu's threshold of the last ``recent_distances`` does, for events
    times ``event_relaxation``. These three and ``plane_side`` are ours: the paper names none.

    A build goes on by ``step_ms``. A language model sees ``document_frames`` of an event at most
    and writes ``document_lines``. A question has ``rounds``.
    """

    every_ms: PositiveInt = 2 * SECOND
    least_sharpness: float = Field(default=20.0, ge=0)
    least_change: float = Field(default=20.0, ge=0, le=255)
    most_similarity: float = Field(default=0.92, ge=-1, le=1)
    least_histogram_change: float = Field(default=0.0, ge=0, le=2)
    plane_side: PositiveInt = 256

    moment_distance: float = Field(default=1 - 0.88, ge=0, le=2)
    event_distance: float = Field(default=1 - 0.80, ge=0, le=2)
    least_distances: PositiveInt = 30
    recent_distances: PositiveInt = 300
    event_relaxation: float = Field(default=0.9, gt=0, le=1)
    event_ms: PositiveInt = 300 * SECOND

    step_ms: PositiveInt = 60 * SECOND
    document_frames: PositiveInt = 8
    document_lines: PositiveInt = 8
    rounds: PositiveInt = 8

    tiers: tuple[AgeTier, ...] = (
        AgeTier(from_age_ms=HOUR, every_ms=20 * SECOND, side=768, quality=70),
        AgeTier(from_age_ms=24 * HOUR, every_ms=120 * SECOND, side=512, quality=45),
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.least_distances > self.recent_distances:
            raise ValueError("fewer distances are remembered than are needed")
        ages = [tier.from_age_ms for tier in self.tiers]
        if ages != sorted(set(ages)):
            raise ValueError("tiers are not in ascending order of age")
        for younger, older in zip(self.tiers, self.tiers[1:], strict=False):
            if older.every_ms % younger.every_ms:
                raise ValueError("intervals of tiers are not multiples of those before")
        return self

    def tier_of(self, age_ms: NonNegativeInt) -> int:
        """Return the tier of frames of an age: 0 for those that all stay."""
        return sum(age_ms >= tier.from_age_ms for tier in self.tiers)


# The parts of VAM that can be switched off, to measure what each adds.

SUMMARIES, LOOKING = "summaries", "looking"

PARTS = {SUMMARIES: "none are made, found or begun with", LOOKING: "frames are not inspected"}

SUMMARY = "summary"
"""The level of summaries begins with this; after it come the structure and the granularity."""


# The arguments of VAM's tools; unknown keys are refused.

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
