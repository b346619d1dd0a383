"""Spans of video time as sets of moments: what they share, what they cover, how far apart they are.

Spans are half-open, in milliseconds; those of a set may overlap. A span without length stands for
its first millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.time import TimeSpan


def merged(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The same moments as spans that neither overlap nor touch, in order."""
    made: list[TimeSpan] = []
    for span in sorted(map(_long, spans), key=lambda one: (one.start_ms, one.end_ms)):
        if made and span.start_ms <= made[-1].end_ms:
            made[-1] = made[-1].union(span)
        else:
            made.append(span)
    return made


def _long(span: TimeSpan) -> TimeSpan:
    return TimeSpan.of(span.start_ms, max(span.end_ms, span.start_ms + 1))


def covered_ms(spans: Iterable[TimeSpan]) -> int:
    """Milliseconds in any of the spans."""
    return sum(span.length_ms for span in merged(spans))


def iou(some: Sequence[TimeSpan], others: Sequence[TimeSpan]) -> float:
    """Temporal intersection over union of two sets of moments, in [0, 1]; 0 of nothing."""
    union = covered_ms([*some, *others])
    shared = covered_ms(some) + covered_ms(others) - union
    return shared / union if union else 0.0


def touches(span: TimeSpan, others: Iterable[TimeSpan]) -> bool:
    """Whether a span shares a moment with one of the others."""
    return any(_long(span).overlap_ms(_long(other)) > 0 for other in others)


def distance_ms(span: TimeSpan, others: Iterable[TimeSpan]) -> int | None:
    """Milliseconds from a span to the nearest of the others, 0 where they meet; None of none."""
    gaps = [max(o.start_ms - span.end_ms, span.start_ms - o.end_ms, 0) for o in others]
    return min(gaps, default=None)
