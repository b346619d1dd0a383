"""The short-term memory: the last events with at most K frames together.

While one event alone has more, its frames are a uniform sample; when all events together have more,
the oldest leaves for the long-term memory. What is in memory at any second follows from the times
of the frames of each event alone, so it is found again from the record (``memory_at``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from domain.base import Frozen
from strategies.eventmem.reservoir import place_of
from strategies.eventmem.settings import EventMemorySettings


class Run(NamedTuple):
    """Frames at equal intervals: the time of the first, and how many there are."""

    start_ms: int
    frames: int


class EventRecord(Frozen):
    """The record of an event: its number from 0, and when its frames were seen."""

    number: int
    runs: tuple[tuple[int, int], ...]

    @property
    def start_ms(self) -> int:
        """Return the time of its first frame."""
        return self.runs[0][0]

    def times(self, every_ms: int, until_ms: int | None = None) -> Iterator[int]:
        """Yield the times of its frames in order, up to ``until_ms`` if that is given."""
        for start, frames in self.runs:
            for time in range(start, start + frames * every_ms, every_ms):
                if until_ms is not None and time > until_ms:
                    return
                yield time


class EventFrames(Frozen):
    """An event in the short-term memory: its record, and its frames by their place."""

    record: EventRecord
    seen: int
    frames: tuple[int, ...]


@dataclass(frozen=True)
class MemoryStep:
    """What a frame changes: the time of a frame that left, and events that left whole.

    ``first_ms`` is the first frame of its event.
    """

    kept: bool
    first_ms: int
    replaced_ms: int | None = None
    evicted: tuple[EventFrames, ...] = ()


class ShortTermMemory:
    """The frames of the last events.

    Args:
        video: the video's id, which seeds the samples.
        events: the ``events`` of a memory that goes on, oldest first.
    """

    def __init__(
        self, settings: EventMemorySettings, video: str, events: Sequence[EventFrames] = ()
    ) -> None:
        self._settings, self._video = settings, video
        self._events = [_GrowingEvent(event) for event in events]

    @property
    def events(self) -> tuple[EventFrames, ...]:
        """Return the events in memory, oldest first."""
        return tuple(event.frozen() for event in self._events)

    def add(self, time_ms: int, *, begins_event: bool) -> MemoryStep:
        """Add the next frame, of a new event or of the last one."""
        if begins_event or not self._events:
            number = self._events[-1].number + 1 if self._events else 0
            self._events.append(_GrowingEvent.first(number))
        event = self._events[-1]
        event.record(time_ms, self._settings.every_ms)
        place = place_of(self._video, event.number, event.seen, self._settings.frames)
        replaced = None if place is None else event.put(time_ms, place)
        return MemoryStep(place is not None, event.runs[0].start_ms, replaced, self._evict())

    def _evict(self) -> tuple[EventFrames, ...]:
        evicted: list[EventFrames] = []
        while sum(len(event.frames) for event in self._events) > self._settings.frames:
            evicted.append(self._events.pop(0).frozen())
        return tuple(evicted)


class _GrowingEvent:
    """An event to which frames are added."""

    def __init__(self, event: EventFrames) -> None:
        self.number, self.seen = event.record.number, event.seen
        self.runs = [Run(*run) for run in event.record.runs]
        self.frames = list(event.frames)

    @classmethod
    def first(cls, number: int) -> _GrowingEvent:
        return cls(EventFrames(record=EventRecord(number=number, runs=()), seen=0, frames=()))

    def frozen(self) -> EventFrames:
        record = EventRecord(number=self.number, runs=tuple(tuple(run) for run in self.runs))
        return EventFrames(record=record, seen=self.seen, frames=tuple(self.frames))

    def record(self, time_ms: int, every_ms: int) -> None:
        self.seen += 1
        if self.runs and time_ms == self.runs[-1].start_ms + self.runs[-1].frames * every_ms:
            self.runs[-1] = self.runs[-1]._replace(frames=self.runs[-1].frames + 1)
        else:
            self.runs.append(Run(time_ms, 1))

    def put(self, time_ms: int, place: int) -> int | None:
        """Put a frame into a place; return the one that it replaces."""
        if place == len(self.frames):
            self.frames.append(time_ms)
            return None
        replaced, self.frames[place] = self.frames[place], time_ms
        return replaced


def memory_at(
    records: Sequence[EventRecord], time_ms: int, settings: EventMemorySettings, video: str
) -> tuple[EventFrames, ...]:
    """Return the short-term memory as it was at a time, oldest event first.

    An event was still in memory if it and all later ones had at most K frames together: sizes only
    grow, so what has left does not come back.

    Args:
        records: of the events up to then, in order; those long before need not be there.
        time_ms: the time; frames at this very time are in memory already.
        video: the video's id.
    """
    found: list[EventFrames] = []
    room = settings.frames
    for record in reversed(records):
        if record.start_ms > time_ms:
            continue
        event = _event_at(record, time_ms, settings, video)
        room -= len(event.frames)
        if room < 0:
            break
        found.insert(0, event)
    return tuple(found)


def _event_at(
    record: EventRecord, time_ms: int, settings: EventMemorySettings, video: str
) -> EventFrames:
    """Add the frames of one event again, up to a time."""
    times = record.times(settings.every_ms, time_ms)
    event = _GrowingEvent.first(record.number)
    for time in times:
        event.record(time, settings.every_ms)
        place = place_of(video, record.number, event.seen, settings.frames)
        if place is not None:
            event.put(time, place)
    return event.frozen()
