"""The short-term memory as of a moment, found again from what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.memories import MemoryView, Scope
from domain.time import TimeSpan
from store.queries.clips import clips_page
from store.queries.frames import carried_by
from strategies.eventmem.event_memory import EventMemoryState
from strategies.eventmem.records import all_records
from strategies.eventmem.short_term import EventFrames, memory_at

if TYPE_CHECKING:
    from store.database import Store
    from strategies.eventmem.settings import EventMemorySettings
    from strategies.kept_frames import FrameReader, KeptFrame


@dataclass(frozen=True)
class NumberedFrame:
    """A frame of the short-term memory by its number; ``frame`` is None if it is kept no longer."""

    number: int
    time_ms: int
    frame: KeptFrame | None


@dataclass(frozen=True)
class ShortTerm:
    """The short-term memory of a video at a moment: its frames in order of time, from 0."""

    scope: Scope
    events: tuple[EventFrames, ...]
    frames: tuple[NumberedFrame, ...]

    @property
    def kept(self) -> list[tuple[int, KeptFrame]]:
        """Return the frames that are still there, with their numbers."""
        return [(one.number, one.frame) for one in self.frames if one.frame is not None]

    @property
    def span(self) -> TimeSpan | None:
        """Return from when to when its events are; None without any."""
        if not self.events:
            return None
        return TimeSpan.of(self.events[0].record.start_ms, self.frames[-1].time_ms + 1)


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
        """Return the short-term memory of each video of a view."""
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
        records = all_records(
            (one.frame for one in frames), (event.record for event in state.events)
        )
        events = memory_at(records, moment, self._settings, scope.video)
        times = sorted(time for event in events for time in event.frames)
        stored = {one.frame.time_ms: one for one in frames}
        numbered = tuple(NumberedFrame(n, time, stored.get(time)) for n, time in enumerate(times))
        return ShortTerm(scope, events, numbered)
