"""The times of a search: relative, absolute, or anchored to events that are searched for."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from domain.base import Frozen

WEEK_S = 7 * 86_400
VERIFIED_CHARACTERS = 400


class RelativeRange(Frozen):
    """The last seconds before the moment of the question."""

    kind: Literal["relative"]
    last_s: float = Field(gt=0, allow_inf_nan=False, description="so many seconds before now")


class AbsoluteRange(Frozen):
    """From one second of the video to another."""

    kind: Literal["absolute"]
    start_s: float = Field(ge=0, allow_inf_nan=False)
    end_s: float = Field(gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end_s <= self.start_s:
            raise ValueError("end_s is not after start_s")
        return self


class EventAnchor(Frozen):
    """An event that is searched for, and which of its occurrences is meant."""

    q: str = Field(min_length=1, description="what happens in it")
    top_k: int = Field(default=20, ge=1, le=50, description="events that are looked through")
    inspect_k: int = Field(default=0, ge=0, le=20, description="of those, whose frames are shown")
    threshold: float = Field(default=0.65, ge=0, allow_inf_nan=False)
    occurrence: int = Field(default=1, ge=1, le=100, description="the n-th one in order of time")
    verify: str = Field(
        default="", max_length=VERIFIED_CHARACTERS, description="what its frames have to show"
    )

    @model_validator(mode="after")
    def _inspected_are_found(self) -> Self:
        if self.inspect_k > self.top_k:
            raise ValueError("inspect_k is more than top_k")
        return self


class AnchoredRange(Frozen):
    """Around, before or after an event."""

    kind: Literal["anchored"]
    relation: Literal["around", "before", "after"]
    anchor: EventAnchor
    within_s: float = Field(
        gt=0, le=WEEK_S, allow_inf_nan=False, description="so far from it, at most a week"
    )


class BetweenRange(Frozen):
    """Between the end of one event and the start of another."""

    kind: Literal["between"]
    first: EventAnchor
    second: EventAnchor


TimeRange = Annotated[
    RelativeRange | AbsoluteRange | AnchoredRange | BetweenRange, Field(discriminator="kind")
]
