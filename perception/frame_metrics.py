"""Sampled pictures become frames, where it pays in a thread beside the one that decodes."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perception.frames import Frame, shrink
from perception.quality import QualityMeter, compared

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings
    from perception.quality import Grey

_BEHIND = 8
"""Pictures that measuring may lag behind decoding, since each is held in full size until then."""


@dataclass(frozen=True, eq=False)
class MeasuredFrames:
    """Frames side by side, with the grey (H, W) of the first and last; None where there is none."""

    frames: list[Frame]
    first: Grey | None = None
    last: Grey | None = None

    def followed_by(self, more: MeasuredFrames) -> MeasuredFrames:
        """These frames, then those that were measured as if nothing had been before them."""
        if self.last is None or more.first is None:
            return more if self.last is None else self
        change, alike = compared(self.last, more.first)
        next_one, *rest = more.frames
        marks = replace(next_one.marks, change=change, alike=alike)
        frames = [*self.frames, replace(next_one, marks=marks), *rest]
        return MeasuredFrames(frames, self.first, more.last)


class Measurer:
    """Measures and shrinks pictures one after the other, each compared with the one before it.

    Args:
        rotation: degrees by which pictures are turned to stand upright.
        settings: how they are measured and shrunk.
        beside: in a thread of its own, while the caller decodes the next ones.
    """

    def __init__(self, rotation: int, settings: WatchSettings, *, beside: bool = True) -> None:
        self._rotation, self._height = rotation, settings.frame_height
        self._meter = QualityMeter(settings.hue_bins)
        self._taken: list[Future[Frame]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="measure") if beside else None

    def take(self, picture: av.VideoFrame, time_ms: int) -> None:
        """The next picture of the clip; waits where too many are not measured yet."""
        if self._thread is None:
            done: Future[Frame] = Future()
            done.set_result(self._frame(picture, time_ms))
            self._taken.append(done)
            return
        self._taken.append(self._thread.submit(self._frame, picture, time_ms))
        if len(self._taken) > _BEHIND:
            self._taken[-1 - _BEHIND].result()

    def measured(self) -> MeasuredFrames:
        """All that were taken, in order; the next picture is the first of a clip."""
        frames = [one.result() for one in self._taken]
        measured = MeasuredFrames(frames, self._meter.first, self._meter.last)
        self._taken.clear()
        self._meter.forget()
        return measured

    def close(self) -> None:
        """End the thread, after the picture that it is at."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def _frame(self, picture: av.VideoFrame, time_ms: int) -> Frame:
        marks = self._meter.measure(picture)
        return Frame(time_ms, marks, shrink(picture, self._rotation, self._height), self._rotation)
