"""Keeps the frames of the short-term memory and the first of every event, while watching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perception.frame_keeper import FrameChange, FrameToKeep, HeldEvent, KeptFrames, State
from strategies.eventmem.event_memory import EventMemory, EventMemoryChange, EventMemoryState
from strategies.eventmem.records import record_reason

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder
    from strategies.eventmem.settings import EventMemorySettings

LONG_TERM = 1
"""The tier of frames of the long-term memory, which are smaller."""


class EventKeeper:
    """Keeps a sample of the last events, and how each event began."""

    version = 1

    def __init__(self, settings: EventMemorySettings) -> None:
        self._settings = settings
        self.every_ms = settings.every_ms

    def begin(
        self,
        video: Video,
        carried: State,
        encoder: ImageEncoder | None,  # noqa: ARG002 - events are told apart by grey histograms
    ) -> EventKeeping:
        """Begin, or go on."""
        state = EventMemoryState.model_validate(carried)
        return EventKeeping(self._settings, EventMemory(self._settings, video.id, state))


class EventKeeping:
    """The keeper at work."""

    def __init__(self, settings: EventMemorySettings, memory: EventMemory) -> None:
        self._settings, self._memory = settings, memory

    def clip(
        self,
        clip: Clip,  # noqa: ARG002 - frames have times of the video
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the frames that are in memory after a clip, and let others go."""
        for time, image in frames:
            self._memory.add(time, image)
        change = self._memory.end_clip()
        return KeptFrames(
            frames=list(self._added(change)),
            state=self._memory.state.model_dump(mode="json"),
            dropped=change.dropped,
            changed=[
                FrameChange(start, record, LONG_TERM, *self._size)
                for start, record in _left(change).items()
                if start not in change.added
            ],
        )

    @property
    def _size(self) -> tuple[int, int]:
        return self._settings.long_term_side, self._settings.long_term_quality

    def _added(self, change: EventMemoryChange) -> Iterator[FrameToKeep]:
        left = _left(change)
        for time, use in change.added.items():
            if time in left:
                yield FrameToKeep(time, left[time], LONG_TERM, *self._size)
            else:
                yield FrameToKeep(time, use)


def _left(change: EventMemoryChange) -> dict[int, str]:
    """Return the records of events that left, by the time of their first frame."""
    return {record.start_ms: record_reason(record) for record in change.evicted}


def held_events(carried: State) -> list[HeldEvent]:
    """Return the short-term memory in what the keeper carried on, oldest event first."""
    events = EventMemoryState.model_validate(carried).events
    return [HeldEvent(one.record.number, one.seen, tuple(sorted(one.frames))) for one in events]
