"""Windows of the time scales: without overlap, from the start of the video; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.time import TimeSpan


class ScaleWindow(Frozen):
    """Window ``number`` (from 0) of a scale: ``[number * scale_ms, (number + 1) * scale_ms)``."""

    scale_ms: PositiveInt
    number: NonNegativeInt

    @property
    def span(self) -> TimeSpan:
        """When it is, as if the video went on to its end."""
        return TimeSpan.of(self.number * self.scale_ms, self.end_ms)

    @property
    def end_ms(self) -> int:
        """When it is complete."""
        return (self.number + 1) * self.scale_ms


def window_at(scale_ms: int, time_ms: int) -> ScaleWindow:
    """Return the window of a scale that a moment lies in."""
    return ScaleWindow(scale_ms=scale_ms, number=time_ms // scale_ms)


def due_windows(
    scales_ms: Sequence[int],
    times_ms: Iterable[int],
    built_ms: int,
    seen_ms: int,
    *,
    ended: bool = False,
) -> tuple[ScaleWindow, ...]:
    """Return the windows that have become complete since the last time.

    Args:
        scales_ms: the scales of the video.
        times_ms: when something was seen or said, at least all times whose windows are due: windows
            in which there was nothing are not due.
        built_ms: through when windows were built already.
        seen_ms: through when the video is known.
        ended: nothing follows, so that the last windows are complete as they are.

    Returns:
        In the order in which they become complete, finer ones first, so that what a coarser one
        summarises is there.
    """
    times = tuple(times_ms)
    due = {
        window
        for scale in scales_ms
        for window in (window_at(scale, time) for time in times)
        if is_due(window, built_ms, seen_ms, ended=ended)
    }
    return tuple(sorted(due, key=lambda window: (window.end_ms, window.scale_ms)))


def is_due(window: ScaleWindow, built_ms: int, seen_ms: int, *, ended: bool = False) -> bool:
    """Check whether a window is complete at ``seen_ms`` and was not at ``built_ms``.

    With ``ended``, what has begun is complete.
    """
    if window.end_ms <= built_ms:
        return False
    return window.end_ms <= seen_ms or (ended and window.span.start_ms < seen_ms)


def summarised_scale(scales_ms: Sequence[int], scale_ms: int) -> int | None:
    """Return the scale whose captions a coarser one summarises; None for the finest.

    It is the coarsest finer one whose windows do not cross the windows' bounds: 10 min are made of
    30 s, since 3 min do not divide them.
    """
    finer = [one for one in scales_ms if one < scale_ms and scale_ms % one == 0]
    return max(finer, default=None)


def finer_windows(window: ScaleWindow, scale_ms: int) -> Iterator[ScaleWindow]:
    """Yield the windows of a finer scale that lie in a window, in order."""
    first, after = window.span.start_ms // scale_ms, window.end_ms // scale_ms
    for number in range(first, after):
        yield ScaleWindow(scale_ms=scale_ms, number=number)
