"""Spans of video time as sets of moments: what they share and what they cover.

Spans are half-open, in milliseconds; those of a set may overlap. An empty span counts as its first
millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.time import TimeSpan


def merge_spans(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the same moments as spans that neither overlap nor touch, in order."""
    merged_spans: list[TimeSpan] = []
    for span in sorted(map(_long, spans), key=lambda item: (item.start_ms, item.end_ms)):
        if merged_spans and span.start_ms <= merged_spans[-1].end_ms:
            merged_spans[-1] = merged_spans[-1].union(span)
        else:
            merged_spans.append(span)
    return merged_spans


def _long(span: TimeSpan) -> TimeSpan:
    return TimeSpan.of(span.start_ms, max(span.end_ms, span.start_ms + 1))


def covered_ms(spans: Iterable[TimeSpan]) -> int:
    """Return the milliseconds in any of the spans."""
    return sum(span.length_ms for span in merge_spans(spans))


def iou(spans: Sequence[TimeSpan], other_spans: Sequence[TimeSpan]) -> float:
    """Return the intersection over union of two sets of moments, in [0, 1]; 0 of nothing."""
    union = covered_ms([*spans, *other_spans])
    shared = covered_ms(spans) + covered_ms(other_spans) - union
    return shared / union if union else 0.0


def touches(span: TimeSpan, spans: Iterable[TimeSpan]) -> bool:
    """Check whether a span shares a moment with one of the others."""
    return any(_long(span).overlap_ms(_long(other)) > 0 for other in spans)


def bins(spans: Iterable[TimeSpan], width_ms: int) -> frozenset[int]:
    """Return the bins of video time, each ``width_ms`` wide, that spans touch."""
    return frozenset(
        number
        for span in map(_long, spans)
        for number in range(span.start_ms // width_ms, (span.end_ms - 1) // width_ms + 1)
    )


def binned_iou(spans: Iterable[TimeSpan], other_spans: Iterable[TimeSpan], width_ms: int) -> float:
    """Return the intersection over union of the bins of two sets, in [0, 1]; 0 of nothing."""
    ours, theirs = bins(spans, width_ms), bins(other_spans, width_ms)
    return len(ours & theirs) / max(1, len(ours | theirs))
