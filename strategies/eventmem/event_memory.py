"""The memory of a stream's pictures: segmentation, and the last events with at most K frames.

An event's first frame stays when the event leaves for the long-term memory; its others go. While
one event alone has more than K frames, they are a uniform sample; when all events together have
more, the oldest leaves. What is in memory at any second follows from the times of the frames of
each event alone, so it is found again from the record (``memory_at``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np

from domain.base import Frozen
from domain.built import BuiltFrame
from domain.memories import MemoryView, Scope
from domain.time import TimeSpan
from perception.frame_keeper import (
    FrameChange,
    FrameKeeper,
    FrameToKeep,
    HeldEvent,
    KeptFrames,
    State,
)
from store.queries.clips import clips_page
from store.queries.keyframes import carried_by
from strategies.eventmem.settings import EventMemorySettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder
    from store.database import Store
    from strategies.eventmem.settings import EventMemorySettings
    from strategies.kept_frames import FrameReader, KeptFrame


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


# From the frames of a stream to what is kept.


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
        change, self._change = self._change, EventMemoryChange()
        return change

    def _drop(self, times_ms: Iterable[int], first_ms: int) -> None:
        """Drop frames of an event, but for its first."""
        for time in times_ms:
            if time != first_ms and self._change.added.pop(time, None) is None:
                self._change.dropped.append(time)


# The record of an event, as it stays with its first frame when it leaves the short-term memory.

_RECORD = re.compile(r"first of event (\d{1,9}): (\d{1,15}\+\d{1,9}(?: \d{1,15}\+\d{1,9})*)")


def record_reason(record: EventRecord) -> str:
    """Return why the first frame of an event is kept: with when the event's frames were seen."""
    runs = " ".join(f"{start}+{frames}" for start, frames in record.runs)
    return f"{FrameUse.FIRST} of event {record.number}: {runs}"


def recorded(reason: str) -> EventRecord | None:
    """Return the record that ``record_reason`` wrote; None if it is none."""
    found = _RECORD.fullmatch(reason)
    if found is None:
        return None
    runs = (run.split("+") for run in found[2].split())
    return EventRecord(
        number=int(found[1]), runs=tuple((int(start), int(frames)) for start, frames in runs)
    )


def is_first(frame: BuiltFrame) -> bool:
    return frame.reason == FrameUse.FIRST or recorded(frame.reason) is not None


# Keeps the frames of the short-term memory and the first of every event, while watching.

LONG_TERM = 1
"""The tier of frames of the long-term memory, which are smaller."""


def event_keeper(settings: EventMemorySettings) -> FrameKeeper:
    """Return what keeps a sample of the last events, and how each event began."""

    def keep(
        video: Video,
        carried: State,
        _encoder: ImageEncoder | None,
        _clip: Clip,
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the frames that are in memory after a clip, and let others go."""
        memory = EventMemory(settings, video.id, EventMemoryState.model_validate(carried))
        for time, image in frames:
            memory.add(time, image)
        change = memory.end_clip()
        left = {record.start_ms: record_reason(record) for record in change.evicted}
        side, quality = settings.long_term_side, settings.long_term_quality
        return KeptFrames(
            frames=[
                FrameToKeep(at, left[at], LONG_TERM, side, quality)
                if at in left
                else FrameToKeep(at, use)
                for at, use in change.added.items()
            ],
            state=memory.state.model_dump(mode="json"),
            dropped=change.dropped,
            changed=[
                FrameChange(start, record, LONG_TERM, side, quality)
                for start, record in left.items()
                if start not in change.added
            ],
        )

    return FrameKeeper(version=1, every_ms=settings.every_ms, keep=keep)


def held_events(carried: State) -> list[HeldEvent]:
    """Return the short-term memory in what the keeper carried on, oldest event first."""
    events = EventMemoryState.model_validate(carried).events
    return [HeldEvent(one.record.number, one.seen, tuple(sorted(one.frames))) for one in events]


# The short-term memory as of a moment, found again from what is stored.


@dataclass(frozen=True)
class ShortTerm:
    """The short-term memory of a video at a moment: its frames in order of time, from 0.

    ``frames``: their times in ms; with None those that are kept no longer.
    """

    scope: Scope
    events: tuple[EventFrames, ...]
    frames: tuple[tuple[int, KeptFrame | None], ...]

    @property
    def kept(self) -> list[tuple[int, KeptFrame]]:
        """Return the frames that are still there, with their numbers."""
        return [(n, frame) for n, (_, frame) in enumerate(self.frames) if frame is not None]

    @property
    def span(self) -> TimeSpan | None:
        """Return from when to when its events are; None without any."""
        if not self.events:
            return None
        return TimeSpan.of(self.events[0].record.start_ms, self.frames[-1][0] + 1)


class Recall:
    """Finds the short-term memory of any moment again.

    Args:
        builder: the name under which they are kept.
    """

    def __init__(
        self, store: Store, frames: FrameReader, settings: EventMemorySettings, builder: str
    ) -> None:
        self._store, self._frames = store, frames
        self._settings, self._builder = settings, builder

    def each(self, view: MemoryView) -> list[ShortTerm]:
        return [self.at(scope, view.as_of_ms) for scope in view.scopes]

    def at(self, scope: Scope, as_of_ms: int | None) -> ShortTerm:
        """Return the memory after the last clip of a scope, and not later than ``as_of_ms``.

        Which frames were in it is exact. Frames that were replaced or left since are not kept.
        """
        frames = self._frames.within(scope)
        with self._store.begin() as session:
            clips = clips_page(session, scope.video, max(0, scope.last_clip), 1)
            carried = carried_by(session, scope.video, [self._builder]).get(self._builder)
        end_ms = clips[0].span.end_ms - 1 if clips and scope.last_clip >= 0 else -1
        moment = end_ms if as_of_ms is None else min(end_ms, as_of_ms)
        state = EventMemoryState.model_validate(carried.state if carried else {})
        # The records of events: of those that left, and of those still in memory.
        left = (one for of in frames if (one := recorded(of.frame.reason)) is not None)
        records = {one.start_ms: one for one in left}
        records |= {event.record.start_ms: event.record for event in state.events}
        in_order = [records[start] for start in sorted(records)]
        events = memory_at(in_order, moment, self._settings, scope.video)
        times = sorted(time for event in events for time in event.frames)
        stored = {one.frame.time_ms: one for one in frames}
        return ShortTerm(scope, events, tuple((time, stored.get(time)) for time in times))
