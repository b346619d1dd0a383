"""What is shown, clip by clip: measured frames, and where nothing decodes or nothing moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from domain.time import TimeSpan
from perception.frame_metrics import MeasuredFrames
from perception.sampling import SampleGrid

if TYPE_CHECKING:
    from collections.abc import Iterator

    import av

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.frame_metrics import Measurer
    from perception.picture_stream import ShownPicture

_STILL_MS = 1_000


@dataclass(frozen=True, eq=False)
class ClipFrame:
    """The pictures of one clip: frames, instants that did not decode, and long stills."""

    measured: MeasuredFrames
    dark: list[TimeSpan]
    still: list[TimeSpan]

    def followed_by(self, more: ClipFrame) -> ClipFrame:
        """This, then the rest of the same clip."""
        measured = self.measured.followed_by(more.measured)
        return ClipFrame(measured, self.dark + more.dark, self.still + more.still)


NOTHING = ClipFrame(MeasuredFrames([]), [], [])


class ClipFrames:
    """Cuts the stream of what is shown into clips."""

    def __init__(
        self, shown: Iterable[ShownPicture], measurer: Measurer, settings: WatchSettings
    ) -> None:
        self._shown = iter(shown)
        self._measurer = measurer
        self._grid = SampleGrid.of(settings)

    def of(self, clip: Clip) -> ClipFrame:
        """The view of the next clip."""
        dark, still = [], []
        last: av.VideoFrame | None = None
        for shown in self._within(clip):
            if shown.picture is None:
                dark.append(self._gap(shown, clip))
            elif shown.picture is not last:
                self._measurer.take(shown.picture, max(shown.time_ms, clip.span.start_ms))
            if shown.instant_ms - shown.time_ms >= _STILL_MS:
                still.append(self._gap(shown, clip))
            last = shown.picture
        return ClipFrame(self._measurer.measured(), dark, still)

    def _within(self, clip: Clip) -> Iterator[ShownPicture]:
        for shown in self._shown:
            if shown.instant_ms >= clip.span.end_ms:
                self._shown = chain([shown], self._shown)
                return
            yield shown

    def _gap(self, shown: ShownPicture, clip: Clip) -> TimeSpan:
        end = self._grid.at_or_after(shown.instant_ms + 1)
        return TimeSpan.of(shown.instant_ms, min(end, clip.span.end_ms))
