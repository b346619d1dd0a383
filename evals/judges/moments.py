"""Temporal grounding, if the reference has spans: tIoU of the citations, and Ref@300."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from domain.asking import Answer
from domain.time import TimeSpan
from evals.dataset import EvalQuestion

BIN_MS = 300_000
"""Width of the bins of Ref@300."""


class Grounding(TypedDict):
    """How well an answer's moments match the reference's; None if it has no spans."""

    iou: float | None
    ref300: float | None


def judge_moments(question: EvalQuestion, answer: Answer, video: str) -> Grounding:
    """Return the overlap of cited and marked spans: to the millisecond, and in bins of 300 s.

    Bins are those of all cited spans; without citations, of the first span that was retrieved.
    Spans of other videos than the question's count as disjoint.
    """
    if not question.spans:
        return Grounding(iou=None, ref300=None)
    cited = [citation.span for citation in answer.citations if citation.video == video]
    return Grounding(
        iou=iou(cited, question.spans),
        ref300=binned_iou(_meant(answer, video), question.spans, BIN_MS),
    )


def _meant(answer: Answer, video: str) -> list[TimeSpan]:
    """Return the cited spans of the video; without any citation, the first retrieved one."""
    cited = [(moment.video, moment.span) for moment in answer.citations]
    spans = cited or [(moment.video, moment.span) for moment in answer.retrieved[:1]]
    return [span for where, span in spans if where == video]


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


class Precision(TypedDict):
    """The share of citations with marked evidence, and whether the first one has it.

    None if the reference has no spans. An answer without citations has no share, and its first
    citation counts as wrong.
    """

    cited: float | None
    top: bool | None


def judge_citations(question: EvalQuestion, answer: Answer, video: str) -> Precision:
    """Check which citations overlap a marked span."""
    if not question.spans:
        return Precision(cited=None, top=None)
    hits = [c.video == video and touches(c.span, question.spans) for c in answer.citations]
    share = sum(hits) / len(hits) if hits else None
    return Precision(cited=share, top=bool(hits) and hits[0])
