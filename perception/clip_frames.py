"""Splits sampled pictures into clips: measured frames and undecoded spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from domain.time import TimeSpan
from perception.sampling import SampleGrid

if TYPE_CHECKING:
    from collections.abc import Iterator

    import av

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.frame_metrics import FrameMeasurer
    from perception.frames import Frame
    from perception.picture_stream import SampledPicture


@dataclass(frozen=True, eq=False)
class ClipFrames:
    """The measured frames of one clip, with the spans that did not decode."""

    frames: list[Frame]
    undecoded: list[TimeSpan]


class FrameSplitter:
    """Splits a stream of sampled pictures into clips."""

    def __init__(
        self, pictures: Iterable[SampledPicture], measurer: FrameMeasurer, settings: WatchSettings
    ) -> None:
        self._pictures = iter(pictures)
        self._measurer = measurer
        self._grid = SampleGrid.of(settings)

    def read(self, clip: Clip) -> ClipFrames:
        """Read the frames of the next clip."""
        undecoded = []
        last: av.VideoFrame | None = None
        for sampled in self._pictures_of(clip):
            if sampled.picture is None:
                end = self._grid.at_or_after(sampled.instant_ms + 1)
                undecoded.append(TimeSpan.of(sampled.instant_ms, min(end, clip.span.end_ms)))
            elif sampled.picture is not last:
                self._measurer.add(sampled.picture, max(sampled.time_ms, clip.span.start_ms))
            last = sampled.picture
        return ClipFrames(self._measurer.collect(), undecoded)

    def _pictures_of(self, clip: Clip) -> Iterator[SampledPicture]:
        for sampled in self._pictures:
            if sampled.instant_ms >= clip.span.end_ms:
                self._pictures = chain([sampled], self._pictures)
                return
            yield sampled
