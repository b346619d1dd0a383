"""What stays of a stream's pictures: gates, moments, events and age tiers, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from domain.base import Frozen
from strategies.vam.events import EventBounds, EventStart, EventState
from strategies.vam.gates import Gates
from strategies.vam.moments import Moments, MomentState
from strategies.vam.tiers import Thinning, ThinningState

if TYPE_CHECKING:
    from models.ports import Image, Vector
    from strategies.vam.settings import VisualMemorySettings
    from strategies.vam.vectors import FrameVectors


class FrameReason(StrEnum):
    """Why a frame stays: it is a moment's first or last, or an event rests on it.

    An event begins with an ``EVENT`` frame; on a ``STILL`` one rests an event that begins later,
    because the one before had become too long.
    """

    MOMENT = "moment"
    END = "end"
    EVENT = "event"
    STILL = "still"


class StayingFrame(NamedTuple):
    """A frame that stays, why, and in which age tier."""

    time_ms: int
    reason: FrameReason
    tier: int = 0


class VisualState(Frozen):
    """What is carried on from clip to clip; its size is bounded."""

    plane: str = ""
    moments: MomentState = MomentState()
    events: EventState = EventState()
    thinning: ThinningState = ThinningState()


@dataclass
class VisualChange:
    """What changes with a clip: frames of it, and frames of earlier clips by their times.

    ``vectors`` are those of the frames that are added.
    """

    added: dict[int, StayingFrame] = field(default_factory=dict)
    vectors: dict[int, Vector] = field(default_factory=dict, compare=False)
    dropped: list[int] = field(default_factory=list)
    reasons: dict[int, FrameReason] = field(default_factory=dict)
    tiers: dict[int, int] = field(default_factory=dict)


class VisualMemory:
    """Decides which frames stay, strictly in order of time.

    Args:
        vectors: what distances are measured on.
        state: of a memory that goes on.
    """

    def __init__(
        self,
        settings: VisualMemorySettings,
        vectors: FrameVectors,
        state: VisualState | None = None,
    ) -> None:
        known = state or VisualState()
        self._vectors = vectors
        self._gates = Gates(settings, known.plane)
        self._moments = Moments(settings, vectors.name, known.moments)
        self._events = EventBounds(settings, known.events)
        self._thinning = Thinning(settings, known.thinning)
        self._change = VisualChange()

    @property
    def state(self) -> VisualState:
        """Return what is carried on."""
        return VisualState(
            plane=self._gates.last,
            moments=self._moments.state,
            events=self._events.state,
            thinning=self._thinning.state,
        )

    def add(self, time_ms: int, image: Image) -> None:
        """Look at the next frame, H x W x 3 BGR."""
        self._begin_events(self._events.pass_time(time_ms))
        if self._gates.stopped_by(image) is not None:
            return
        vector = self._vectors.vector(image)
        step = self._moments.add(time_ms, vector)
        if step.replaced_ms is not None:
            self._drop(step.replaced_ms)
        reason = FrameReason.MOMENT if step.starts else FrameReason.END
        self._thinning.add(time_ms)
        self._change.added[time_ms] = StayingFrame(time_ms, reason)
        self._change.vectors[time_ms] = vector
        if step.starts:
            self._begin_events(self._events.add_moment(time_ms, step.change))

    def end_clip(self, now_ms: int) -> VisualChange:
        """Return what changed since the last clip ended; frames are as old as ``now_ms`` says."""
        thinned = self._thinning.thin(now_ms)
        for time in thinned.dropped:
            self._forget(time)
        for time, tier in thinned.moved.items():
            if time in self._change.added:
                self._change.added[time] = self._change.added[time]._replace(tier=tier)
            else:
                self._change.tiers[time] = tier
        change, self._change = self._change, VisualChange()
        return change

    def _drop(self, time_ms: int) -> None:
        self._thinning.remove(time_ms)
        self._forget(time_ms)

    def _forget(self, time_ms: int) -> None:
        self._change.reasons.pop(time_ms, None)
        self._change.vectors.pop(time_ms, None)
        if self._change.added.pop(time_ms, None) is None:
            self._change.dropped.append(time_ms)

    def _begin_events(self, begun: Iterable[EventStart]) -> None:
        for event in begun:
            if self._thinning.protect(event.frame_ms):
                at_start = event.start_ms == event.frame_ms
                self._set_reason(
                    event.frame_ms, FrameReason.EVENT if at_start else FrameReason.STILL
                )

    def _set_reason(self, time_ms: int, reason: FrameReason) -> None:
        if time_ms in self._change.added:
            self._change.added[time_ms] = StayingFrame(time_ms, reason)
        else:
            self._change.reasons[time_ms] = reason
