"""Measures sampled pictures and shrinks them to frames, in a thread of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from perception.frames import Frame, Upright, is_hdr, shrink
from perception.quality import QualityMeter

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings

_MAX_PENDING = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


class FrameMeasurer:
    """Measures and shrinks pictures in order, each compared with the previous one.

    That goes on in a thread of its own, while the caller decodes the next ones.

    Args:
        upright: how pictures become upright.
        settings: how they are measured and shrunk.
    """

    def __init__(self, upright: Upright, settings: WatchSettings) -> None:
        self._upright, self._height = upright, settings.frame_height
        self._meter = QualityMeter(settings)
        self._pending: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure")

    def add(self, picture: av.VideoFrame, time_ms: int) -> None:
        """Add the next picture of the clip; wait while too many are unmeasured."""
        self._pending.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._pending) > _MAX_PENDING:
            self._pending[-1 - _MAX_PENDING].result()

    def collect(self) -> list[Frame]:
        """Return all frames added so far; the next picture starts a clip."""
        frames = [frame.result() for frame in self._pending]
        self._pending.clear()
        self._meter.reset()
        return frames

    def close(self) -> None:
        """Stop the thread after the picture it is measuring."""
        self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        shown = shrink(picture, self._upright, self._height)
        metrics = self._meter.measure(shown if is_hdr(picture) else picture)
        return Frame(time_ms, metrics, shown, self._upright)
