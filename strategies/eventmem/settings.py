"""The numbers of EventMemAgent with the paper's defaults, its parts, and its tools' arguments."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, PositiveInt, StringConstraints, model_validator

from agent.strategy import Options, ToolArguments
from domain.base import Frozen

# The numbers of EventMemAgent, with the paper's defaults.


class EventMemorySettings(Frozen, allow_inf_nan=False):
    """Settings of both memories; the paper names the first four, ``found`` and ``threshold``.

    Attributes:
        every_ms: a frame of the stream is looked at so often.
        frames: the short-term memory has at most so many, of all events together.
        same_event: an event goes on while the correlation of a frame's grey histogram with the
            event's mean one is at least this, -1 to 1.
        least_frames: an event ends only when it had more frames than this.
        long_term_side: pixels of the longest side of frames in the long-term memory.
        long_term_quality: JPEG quality of these.
        found: events that a search of the long-term memory returns at most.
        threshold: the least score of these.
        step_ms: a build goes on by so much.
        document_ms: a longer event is written in parts of this.
        rounds: of a question.
    """

    every_ms: PositiveInt = 1_000
    frames: PositiveInt = 32
    same_event: float = Field(default=0.2, ge=-1, le=1)
    least_frames: PositiveInt = 8
    long_term_side: PositiveInt = 512
    long_term_quality: int = Field(default=70, ge=1, le=100)
    found: PositiveInt = 3
    threshold: float = Field(default=0.3, ge=0, le=1)
    step_ms: PositiveInt = 60_000
    document_ms: PositiveInt = 300_000
    rounds: PositiveInt = 8


# The parts of EventMemAgent that can be switched off, to measure what each adds.

SHORT_TERM, LONG_TERM = "short", "long"

PARTS = {
    SHORT_TERM: "the short-term memory is not looked at first",
    LONG_TERM: "the long-term memory is not searched",
}


# The arguments of EventMemAgent's tools; unknown keys are refused.

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]


class ShortTermArguments(ToolArguments):
    """Nothing but the options to score by what is found, if any."""

    options: Options = ()


class SearchMemoryArguments(ToolArguments):
    """What to look for in the long-term memory, or a stretch of time in seconds."""

    start_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    options: Options = ()

    @model_validator(mode="after")
    def _something_is_asked(self) -> Self:
        if (self.start_s is None) != (self.end_s is None):
            raise ValueError("name both start_s and end_s, or none")
        if self.start_s is not None and self.end_s is not None and self.end_s <= self.start_s:
            raise ValueError("end_s is not after start_s")
        if not self.query and self.start_s is None:
            raise ValueError("name a query, or start_s and end_s")
        return self


class ReadingArguments(ToolArguments):
    """A kept frame: by its number in the short-term memory, by its ref, or those of an event."""

    frame_index: NonNegativeInt | None = Field(
        default=None, description="the number of a frame in the short-term memory"
    )
    event_id: NonNegativeInt | None = Field(default=None, description="the number of an event")
    ref: str | None = Field(default=None, pattern=r"^[fn][1-9]\d{0,17}$")

    @model_validator(mode="after")
    def _one_is_named(self) -> Self:
        if sum(one is not None for one in (self.frame_index, self.event_id, self.ref)) != 1:
            raise ValueError("name one of frame_index, event_id and ref")
        return self


class DetectArguments(ReadingArguments):
    """The things to detect on a frame."""

    labels: tuple[Label, ...] = Field(min_length=1, max_length=20)
