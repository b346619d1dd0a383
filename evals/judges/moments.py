"""Temporal grounding, if the reference has spans: tIoU of the citations, and Ref@300."""

from __future__ import annotations

from typing import TypedDict

from domain.asking import Answer
from domain.time import TimeSpan
from evals.dataset import EvalQuestion
from evals.judges.spans import binned_iou, iou

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
