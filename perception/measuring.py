"""Sampled pictures become frames in a thread beside the one that decodes."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from perception.frames import Frame, shrink
from perception.quality import Meter

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings

_BEHIND = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


class Measurer:
    """Measures and shrinks pictures one after the other, while the caller decodes the next ones.

    There is one thread, so that each picture is compared with the one taken before it.
    """

    def __init__(self, rotation: int, settings: WatchSettings) -> None:
        self._rotation, self._height = rotation, settings.frame_height
        self._meter = Meter(settings.hue_bins)
        self._taken: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure")

    def take(self, picture: av.VideoFrame, time_ms: int) -> None:
        """The next picture of the clip; waits where too many are not measured yet."""
        self._taken.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._taken) > _BEHIND:
            self._taken[-1 - _BEHIND].result()

    def frames(self) -> list[Frame]:
        """All that were taken, in order; the next picture is the first of a clip."""
        frames = [one.result() for one in self._taken]
        self._taken.clear()
        self._meter.forget()
        return frames

    def close(self) -> None:
        """End the thread, after the picture that it is at."""
        self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        marks = self._meter.measure(picture)
        return Frame(time_ms, marks, shrink(picture, self._rotation, self._height), self._rotation)
