"""The numbers of EventMemAgent, with the paper's defaults."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from domain.base import Frozen


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
