"""The instants at which a video is sampled: evenly from the start of each clip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domain.settings import WatchSettings


@dataclass(frozen=True)
class SampleGrid:
    """Sample instants in whole milliseconds; instant 0 of a clip is its start."""

    clip_ms: int
    fps: float

    @classmethod
    def of(cls, settings: WatchSettings) -> SampleGrid:
        """Return the grid of ``settings``: by default 5 per second in clips of 30 s."""
        return cls(settings.clip_ms, settings.sample_fps)

    def at_or_after(self, ms: int) -> int:
        """Return the first instant that is not before ``ms``."""
        clip, local = divmod(ms, self.clip_ms)
        step = max(0, ceil(local * self.fps / 1000) - 1)
        while (instant := int(step * 1000 / self.fps)) < local:
            step += 1
        return clip * self.clip_ms + min(instant, self.clip_ms)

    def within(self, start_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the instants of ``[start_ms, end_ms)``, in order; none before 0."""
        instant = self.at_or_after(max(0, start_ms))
        while instant < end_ms:
            yield instant
            instant = self.at_or_after(instant + 1)
