"""Measures sampled pictures and shrinks them to frames, optionally in a thread of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perception.frames import Frame, Upright, is_hdr, shrink
from perception.quality import QualityMeter, compare

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings
    from perception.quality import MeasuredPicture

_MAX_PENDING = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


@dataclass(frozen=True, eq=False)
class MeasuredFrames:
    """Consecutive frames, with the picture of the first and last in full size."""

    frames: list[Frame]
    first: MeasuredPicture | None = None
    last: MeasuredPicture | None = None

    def concatenate(self, more: MeasuredFrames, threshold: float) -> MeasuredFrames:
        """Append frames that were measured independently; compare across the boundary."""
        if self.last is None or more.first is None:
            return more if self.last is None else self
        change, similarity = compare(self.last, more.first, threshold)
        boundary, *rest = more.frames
        metrics = replace(boundary.metrics, change=change, layout_similarity=similarity)
        frames = [*self.frames, replace(boundary, metrics=metrics), *rest]
        return MeasuredFrames(frames, self.first, more.last)


class FrameMeasurer:
    """Measures and shrinks pictures in order, each compared with the previous one.

    Args:
        upright: how pictures become upright.
        settings: how they are measured and shrunk.
        threaded: in a thread of its own, while the caller decodes the next ones.
    """

    def __init__(self, upright: Upright, settings: WatchSettings, *, threaded: bool = True) -> None:
        self._upright, self._height = upright, settings.frame_height
        self._meter = QualityMeter(settings)
        self._pending: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure") if threaded else None

    def add(self, picture: av.VideoFrame, time_ms: int) -> None:
        """Add the next picture of the clip; wait while too many are unmeasured."""
        if self._thread is None:
            done: Future[Frame] = Future()
            done.set_result(self._frame(picture, time_ms))
            self._pending.append(done)
            return
        self._pending.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._pending) > _MAX_PENDING:
            self._pending[-1 - _MAX_PENDING].result()

    def collect(self) -> MeasuredFrames:
        """Return all frames added so far; the next picture starts a clip."""
        frames = [frame.result() for frame in self._pending]
        measured = MeasuredFrames(frames, self._meter.first, self._meter.last)
        self._pending.clear()
        self._meter.reset()
        return measured

    def close(self) -> None:
        """Stop the thread after the picture it is measuring."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        shown = shrink(picture, self._upright, self._height)
        metrics = self._meter.measure(shown if is_hdr(picture) else picture)
        return Frame(time_ms, metrics, shown, self._upright)
