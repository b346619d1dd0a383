"""The numbers of EventMemAgent, with the paper's defaults."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from domain.base import Frozen


class EventMemorySettings(Frozen, allow_inf_nan=False):
    """Settings of the short-term memory.

    Attributes:
        every_ms: a frame of the stream is looked at so often.
        frames: the short-term memory has at most so many, of all events together.
        same_event: an event goes on while the correlation of a frame's grey histogram with the
            event's mean one is at least this, -1 to 1.
        least_frames: an event ends only when it had more frames than this.
    """

    every_ms: PositiveInt = 1_000
    frames: PositiveInt = 32
    same_event: float = Field(default=0.2, ge=-1, le=1)
    least_frames: PositiveInt = 8
