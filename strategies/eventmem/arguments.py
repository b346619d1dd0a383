"""The arguments of EventMemAgent's tools; unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, StringConstraints, model_validator

from agent.strategy import Options, ToolArguments

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
