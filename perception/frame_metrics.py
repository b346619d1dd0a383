"""Sampled pictures become frames, where it pays in a thread beside the one that decodes."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perception.frames import Frame, shrink
from perception.quality import QualityMeter, compare

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings
    from perception.quality import Grey

_MAX_PENDING = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


@dataclass(frozen=True, eq=False)
class MeasuredFrames:
    """Frames side by side, with the grey (H, W) of the first and last; None where there is none."""

    frames: list[Frame]
    first: Grey | None = None
    last: Grey | None = None

    def concatenate(self, more: MeasuredFrames) -> MeasuredFrames:
        """These frames, then those that were measured as if nothing had been before them."""
        if self.last is None or more.first is None:
            return more if self.last is None else self
        change, similarity = compare(self.last, more.first)
        boundary, *rest = more.frames
        metrics = replace(boundary.metrics, change=change, layout_similarity=similarity)
        frames = [*self.frames, replace(boundary, metrics=metrics), *rest]
        return MeasuredFrames(frames, self.first, more.last)


class FrameMeasurer:
    """Measures and shrinks pictures one after the other, each compared with the one before it.

    Args:
        rotation: degrees by which pictures are turned to stand upright.
        settings: how they are measured and shrunk.
        threaded: in a thread of its own, while the caller decodes the next ones.
    """

    def __init__(self, rotation: int, settings: WatchSettings, *, threaded: bool = True) -> None:
        self._rotation, self._height = rotation, settings.frame_height
        self._meter = QualityMeter(settings.hue_bins)
        self._pending: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure") if threaded else None

    def add(self, picture: av.VideoFrame, time_ms: int) -> None:
        """The next picture of the clip; waits where too many are not measured yet."""
        if self._thread is None:
            done: Future[Frame] = Future()
            done.set_result(self._frame(picture, time_ms))
            self._pending.append(done)
            return
        self._pending.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._pending) > _MAX_PENDING:
            self._pending[-1 - _MAX_PENDING].result()

    def collect(self) -> MeasuredFrames:
        """All that were taken, in order; the next picture is the first of a clip."""
        frames = [frame.result() for frame in self._pending]
        measured = MeasuredFrames(frames, self._meter.first, self._meter.last)
        self._pending.clear()
        self._meter.reset()
        return measured

    def close(self) -> None:
        """End the thread, after the picture that it is at."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        metrics = self._meter.measure(picture)
        return Frame(
            time_ms, metrics, shrink(picture, self._rotation, self._height), self._rotation
        )
