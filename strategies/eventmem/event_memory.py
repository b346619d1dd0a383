"""The memory of a stream's pictures: segmentation, then the short-term memory.

An event's first frame stays when the event leaves for the long-term memory; its others go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from domain.base import Frozen
from strategies.eventmem.segmentation import Segmentation, SegmentationState
from strategies.eventmem.short_term import EventFrames, EventRecord, ShortTermMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from models.ports import Image
    from strategies.eventmem.settings import EventMemorySettings


class FrameUse(StrEnum):
    """What a kept frame is for: the first of an event, or one of its sample."""

    FIRST = "first"
    SAMPLE = "sample"


class EventMemoryState(Frozen):
    """What is carried on from clip to clip; its size is bounded."""

    segmentation: SegmentationState = SegmentationState()
    events: tuple[EventFrames, ...] = ()


@dataclass
class EventMemoryChange:
    """What changes with a clip: frames of it, earlier ones that go, and events that left."""

    added: dict[int, FrameUse] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    evicted: list[EventRecord] = field(default_factory=list)


class EventMemory:
    """Decides which frames are kept, strictly in order of time.

    Args:
        video: the video's id, which seeds the samples.
        state: of a memory that goes on.
    """

    def __init__(
        self, settings: EventMemorySettings, video: str, state: EventMemoryState | None = None
    ) -> None:
        known = state or EventMemoryState()
        self._segmentation = Segmentation(settings, known.segmentation)
        self._memory = ShortTermMemory(settings, video, known.events)
        self._change = EventMemoryChange()

    @property
    def state(self) -> EventMemoryState:
        """Return what is carried on."""
        return EventMemoryState(segmentation=self._segmentation.state, events=self._memory.events)

    def add(self, time_ms: int, image: Image) -> None:
        """Look at the next frame, H x W x 3 BGR."""
        begins = self._segmentation.begins_event(image)
        step = self._memory.add(time_ms, begins_event=begins)
        if step.kept:
            self._change.added[time_ms] = FrameUse.FIRST if begins else FrameUse.SAMPLE
        if step.replaced_ms is not None:
            self._drop([step.replaced_ms], step.first_ms)
        for event in step.evicted:
            self._drop(event.frames, event.record.start_ms)
            self._change.evicted.append(event.record)

    def end_clip(self) -> EventMemoryChange:
        """Return what changed since the last clip ended."""
        change, self._change = self._change, EventMemoryChange()
        return change

    def _drop(self, times_ms: Iterable[int], first_ms: int) -> None:
        """Drop frames of an event, but for its first."""
        for time in times_ms:
            if time != first_ms and self._change.added.pop(time, None) is None:
                self._change.dropped.append(time)
