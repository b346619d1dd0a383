"""Spans of an ingestion: one a clip, and one each time that a step is tried."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from domain.media import Video
from telemetry import tracing

P = ParamSpec("P")
R = TypeVar("R")


class HasVideo(Protocol):
    """Works on one video."""

    video: Video


W = TypeVar("W", bound=HasVideo)


def traced_step(
    name: str,
) -> Callable[[Callable[Concatenate[W, P], R]], Callable[Concatenate[W, P], R]]:
    """Surround each try of a step with a span."""

    def decorate(step: Callable[Concatenate[W, P], R]) -> Callable[Concatenate[W, P], R]:
        @wraps(step)
        def run(work: W, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with tracing.span(tracing.Work.STAGE, name, video=work.video.id):
                return step(work, *args, **kwargs)

        return run

    return decorate


class ClipSpans:
    """The spans of a video's clips. They overlap: the next clip is perceived ahead."""

    def __init__(self, video: Video, clip_ms: int) -> None:
        self._video, self._clip_ms = video, clip_ms
        self._open: dict[int, tracing.Span] = {}

    def run(self, clip: int, step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a step of a clip within the clip's span."""
        if clip not in self._open:
            self._open[clip] = tracing.begin(tracing.Work.CLIP, clip=clip)
        with self._open[clip].activate():
            return step(*args, **kwargs)

    def end(self, clip: int, error: Exception | None) -> None:
        """End a clip's span: it is in memory, or left for another run with ``error``."""
        span = self._open.pop(clip, None)
        if span is not None:
            span.end(error)
        left_ms = self._video.duration_ms - (clip + 1) * self._clip_ms
        tracing.measure(tracing.Metric.LAG_S, max(0, left_ms) / 1000)
        if error is None:
            tracing.measure(tracing.Metric.CLIPS)
        else:
            tracing.measure(tracing.Metric.FAILURES, error=type(error).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the spans of clips that were broken off."""
        for left in self._open.values():
            left.end(error or InterruptedError())
        self._open.clear()
