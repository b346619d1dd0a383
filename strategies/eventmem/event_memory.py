"""The memory of a stream's pictures: segmentation, then the short-term memory.

An event's first frame stays when the event leaves for the long-term memory; its others go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

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
from strategies.eventmem import short_term

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder
    from store.database import Store
    from strategies.eventmem.settings import EventMemorySettings
    from strategies.kept_frames import FrameReader, KeptFrame


class FrameUse(StrEnum):
    """What a kept frame is for: the first of an event, or one of its sample."""

    FIRST = "first"
    SAMPLE = "sample"


class EventMemoryState(Frozen):
    """What is carried on from clip to clip; its size is bounded."""

    segmentation: short_term.SegmentationState = short_term.SegmentationState()
    events: tuple[short_term.EventFrames, ...] = ()


@dataclass
class EventMemoryChange:
    """What changes with a clip: frames of it, earlier ones that go, and events that left."""

    added: dict[int, FrameUse] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    evicted: list[short_term.EventRecord] = field(default_factory=list)


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
        self._segmentation = short_term.Segmentation(settings, known.segmentation)
        self._memory = short_term.ShortTermMemory(settings, video, known.events)
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
        """Return what changed since the last clip ended."""
        change, self._change = self._change, EventMemoryChange()
        return change

    def _drop(self, times_ms: Iterable[int], first_ms: int) -> None:
        """Drop frames of an event, but for its first."""
        for time in times_ms:
            if time != first_ms and self._change.added.pop(time, None) is None:
                self._change.dropped.append(time)


# The record of an event, as it stays with its first frame when it leaves the short-term memory.

_RECORD = re.compile(r"first of event (\d{1,9}): (\d{1,15}\+\d{1,9}(?: \d{1,15}\+\d{1,9})*)")


def record_reason(record: short_term.EventRecord) -> str:
    """Return why the first frame of an event is kept: with when the event's frames were seen."""
    runs = " ".join(f"{start}+{frames}" for start, frames in record.runs)
    return f"{FrameUse.FIRST} of event {record.number}: {runs}"


def recorded(reason: str) -> short_term.EventRecord | None:
    """Return the record that ``record_reason`` wrote; None if it is none."""
    found = _RECORD.fullmatch(reason)
    if found is None:
        return None
    runs = (run.split("+") for run in found[2].split())
    return short_term.EventRecord(
        number=int(found[1]), runs=tuple((int(start), int(frames)) for start, frames in runs)
    )


def is_first(frame: BuiltFrame) -> bool:
    """Check whether an event begins with a frame."""
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
    events: tuple[short_term.EventFrames, ...]
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
        events = short_term.memory_at(in_order, moment, self._settings, scope.video)
        times = sorted(time for event in events for time in event.frames)
        stored = {one.frame.time_ms: one for one in frames}
        return ShortTerm(scope, events, tuple((time, stored.get(time)) for time in times))
