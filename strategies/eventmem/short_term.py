"""The short-term memory: the last events with at most K frames together.

While one event alone has more, its frames are a uniform sample; when all events together have more,
the oldest leaves for the long-term memory. What is in memory at any second follows from the times
of the frames of each event alone, so it is found again from the record (``memory_at``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

from domain.base import Frozen
from strategies.eventmem.settings import EventMemorySettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image


# Reservoir sampling whose choices depend only on the video, the event and the frame's number.


def place_of(video: str, event: int, number: int, size: int) -> int | None:
    """Return the place that a frame takes in its event's reservoir; None if it is not kept.

    The n-th frame is kept with a chance of size / n, in place of a random one (algorithm R). The
    same frame always takes the same place: nothing has to be carried on to choose the same again.

    Args:
        video: the video's id.
        event: the event's number.
        number: which frame of the event it is, from 1.
        size: places of the reservoir.
    """
    if number <= size:
        return number - 1
    digest = sha256(f"{video}\0{event}\0{number}".encode()).digest()
    # 64 bits more than suffice: that they do not divide evenly changes no chance by 1e-12.
    place = int.from_bytes(digest[:8], "big") % number
    return place if place < size else None


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
        evicted: list[EventFrames] = []
        while sum(len(event.frames) for event in self._events) > self._settings.frames:
            evicted.append(self._events.pop(0).frozen())
        return MemoryStep(place is not None, event.runs[0].start_ms, replaced, tuple(evicted))


class _GrowingEvent:
    """An event to which frames are added."""

    def __init__(self, event: EventFrames) -> None:
        self.number, self.seen = event.record.number, event.seen
        self.runs = [Run._make(run) for run in event.record.runs]
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
        # The frames of the event again, up to this time.
        times = record.times(settings.every_ms, time_ms)
        growing = _GrowingEvent.first(record.number)
        for time in times:
            growing.record(time, settings.every_ms)
            place = place_of(video, record.number, growing.seen, settings.frames)
            if place is not None:
                growing.put(time, place)
        event = growing.frozen()
        room -= len(event.frames)
        if room < 0:
            break
        found.insert(0, event)
    return tuple(found)


# Events by grey histograms: a frame unlike the present event's mean begins the next one.

BINS = 256


class SegmentationState(Frozen):
    """What is carried on: frames of the present event, and the sum of their histograms."""

    frames: int = 0
    histogram: tuple[float, ...] = ()


class Segmentation:
    """Says of each frame whether it begins an event, strictly in order of time."""

    def __init__(
        self, settings: EventMemorySettings, state: SegmentationState | None = None
    ) -> None:
        self._settings = settings
        self.state = state or SegmentationState()

    def begins_event(self, image: Image) -> bool:
        """Add the next frame, H x W x 3 BGR; return whether it begins an event."""
        # The shares of grey values: shape (BINS,), sum 1.
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        counts = cv2.calcHist([grey], [0], None, [BINS], [0, 256]).ravel().astype(np.float64)
        shares = np.asarray(counts / grey.size, np.float64)
        frames, summed = self.state.frames, np.array(self.state.histogram or np.zeros(BINS))
        begins = not frames or (
            frames > self._settings.least_frames
            and correlation(shares, summed / frames) < self._settings.same_event
        )
        frames, summed = (1, shares) if begins else (frames + 1, summed + shares)
        self.state = SegmentationState(frames=frames, histogram=tuple(summed.tolist()))
        return begins


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, -1 to 1; where one is constant, 1 if both are, else 0."""
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    if size == 0:
        return float(not a.any() and not b.any())
    return float(a @ b) / size
