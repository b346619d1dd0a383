"""Events: runs of moments between local peaks of the distances between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.base import Frozen
from strategies.vam.thresholds import AdaptiveThreshold

if TYPE_CHECKING:
    from strategies.vam.settings import VisualMemorySettings


class Peak(NamedTuple):
    """The first frame of a moment that begins an event unless the next distance is larger."""

    time_ms: int
    change: float


class EventStart(NamedTuple):
    """An event begins, and the one before ends; ``frame_ms`` is the frame that it rests on.

    That is its first frame, or what was shown still where an event begins by its length.
    """

    start_ms: int
    frame_ms: int


class EventState(Frozen):
    """What is carried on; times are None before the first moment."""

    start_ms: int | None = None
    moment_ms: int | None = None
    previous: float = 0.0
    peak: tuple[int, float] | None = None
    recent: tuple[float, ...] = ()


class EventBounds:
    """Finds where events begin, strictly in order of time.

    A distance is a peak if it is above the threshold and the one before, and the next is not
    larger. So a peak is known when the next moment begins, or when its event is too long.
    """

    def __init__(self, settings: VisualMemorySettings, state: EventState | None = None) -> None:
        known = state or EventState()
        self._longest = settings.event_ms
        self._start, self._moment = known.start_ms, known.moment_ms
        self._previous = known.previous
        self._peak = None if known.peak is None else Peak(*known.peak)
        self._threshold = AdaptiveThreshold(
            settings.event_distance,
            settings.least_distances,
            settings.recent_distances,
            settings.event_relaxation,
            known.recent,
        )

    @property
    def state(self) -> EventState:
        """Return what is carried on."""
        return EventState(
            start_ms=self._start,
            moment_ms=self._moment,
            previous=self._previous,
            peak=self._peak,
            recent=self._threshold.recent,
        )

    def add_moment(self, time_ms: int, change: float) -> list[EventStart]:
        """Add a moment that begins; return the events that are now known to have begun.

        Args:
            time_ms: its first frame; ``pass_time`` has come to it before.
            change: its distance to the moment before.
        """
        if self._start is None:
            self._start = self._moment = time_ms
            return [EventStart(time_ms, time_ms)]
        peak = self._peak
        begun = [self._begin_at(peak)] if peak is not None and peak.change >= change else []
        above = change > self._threshold.value and change > self._previous
        # An event that begins by its length may begin with this very moment.
        new = time_ms > self._start
        self._peak = Peak(time_ms, change) if above and new else None
        self._threshold.add(change)
        self._moment, self._previous = time_ms, change
        return begun

    def pass_time(self, time_ms: int) -> list[EventStart]:
        """Let time pass; return the events that begin since the one before is too long."""
        begun: list[EventStart] = []
        while self._start is not None and time_ms - self._start >= self._longest:
            if self._peak is not None:
                begun.append(self._begin_at(self._peak))
                continue
            self._start += self._longest
            begun.append(EventStart(self._start, self._moment or 0))
        return begun

    def _begin_at(self, peak: Peak) -> EventStart:
        self._start, self._peak = peak.time_ms, None
        return EventStart(peak.time_ms, peak.time_ms)
