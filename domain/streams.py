"""What is not in memory, and live streams: degradation levels, how each clip was watched."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen, StorableText
from domain.time import TimeSpan


class StreamSettings(Frozen, allow_inf_nan=False):
    """How a live source is read: what counts as a gap, and how many clips may queue."""

    gap_ms: PositiveInt = Field(default=2_000, description="so long without anything is a gap")
    jump_ms: PositiveInt = Field(
        default=10_000, description="time stamps that leap further are a new clock"
    )
    least_ms: PositiveInt = Field(default=1_000, description="a shorter piece makes no clip")
    waiting: PositiveInt = Field(default=2, description="whole clips that may wait to be watched")
    connect_s: float = Field(default=10.0, gt=0, description="to reach the source")
    quiet_s: float = Field(default=15.0, gt=0, description="with nothing coming: connect anew")
    record: bool = Field(default=False, description="store what comes, so that it can be played")


class GapReason(StrEnum):
    """Why a span of a stream is not in memory."""

    LOST = "the connection was lost"
    SILENT = "nothing came"
    DAMAGED = "what came does not decode"
    STOPPED = "Homer was not watching"
    SHORT = "too short a piece to watch"
    OVERRUN = "Homer could not keep up"
    UNHEARD = "speech could not be recognised"


class Gap(Frozen):
    """A span that is not in memory; ``frames`` of a stream arrived and were dropped."""

    span: TimeSpan
    reason: GapReason
    frames: NonNegativeInt = 0


Stage = Literal["objects", "screen", "faces", "speech"]
"""A stage of perception that can be skipped."""


class DegradationLevel(Frozen):
    """How much of a clip is perceived when a live source is too fast to keep up with.

    ``share`` of the sampled frames is perceived; ``references_only``: frames that no other frame
    needs are not decoded; ``without`` are the stages skipped.
    """

    share: float = Field(gt=0, le=1)
    references_only: bool = False
    without: tuple[Stage, ...] = ()


LEVELS = (
    DegradationLevel(share=1.0),
    DegradationLevel(share=0.5),
    DegradationLevel(share=0.2, references_only=True),
    DegradationLevel(share=0.2, references_only=True, without=("objects", "screen")),
    DegradationLevel(share=0.2, references_only=True, without=("objects", "screen", "faces")),
    DegradationLevel(
        share=0.2, references_only=True, without=("objects", "screen", "faces", "speech")
    ),
)
"""The levels: first fewer frames, then fewer stages. Past the last level a clip becomes a gap."""


class PictureTally(Frozen):
    """Frame counts of a clip; ``came`` counts packets as received.

    ``sampled`` frames were perceived, ``damaged`` did not decode, all others were dropped.
    """

    came: NonNegativeInt = 0
    damaged: NonNegativeInt = 0
    sampled: NonNegativeInt = 0


class StreamClip(Frozen):
    """How a clip of a stream was watched.

    ``lag_ms``: from the arrival of its last packet until it was in memory; None: not yet.
    """

    clip: NonNegativeInt
    level: NonNegativeInt
    tally: PictureTally
    lag_ms: NonNegativeInt | None = None


class Stream(Frozen):
    """A live source. ``source`` is without user, password and keys; ``began_ms`` is Unix time."""

    source: StorableText
    began_ms: NonNegativeInt
