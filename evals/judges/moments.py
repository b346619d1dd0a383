"""Temporal grounding, where a reference has spans: tIoU of what is cited, and Ref@300."""

from __future__ import annotations

from typing import TypedDict

from domain.asking import Answer
from domain.time import TimeSpan
from evals.dataset import EvalQuestion
from evals.judges.spans import binned_iou, iou

BIN_MS = 300_000
"""Width of the bins of Ref@300."""


class Grounding(TypedDict):
    """How well an answer's moments fit the reference's; None where it has no spans."""

    iou: float | None
    ref300: float | None


def judge_moments(question: EvalQuestion, answer: Answer, video: str) -> Grounding:
    """The overlap of what is cited with what is marked: to the millisecond, and in bins of 300 s.

    Bins are those of all cited spans; without citations, of the first span that was retrieved.
    Spans of other videos than the question's count as apart.
    """
    if not question.spans:
        return Grounding(iou=None, ref300=None)
    cited = [one.span for one in answer.citations if one.video == video]
    return Grounding(
        iou=iou(cited, question.spans),
        ref300=binned_iou(_meant(answer, video), question.spans, BIN_MS),
    )


def _meant(answer: Answer, video: str) -> list[TimeSpan]:
    """What is cited in the video; without any citation, what was retrieved first."""
    cited = [(one.video, one.span) for one in answer.citations]
    found = cited or [(one.video, one.span) for one in answer.retrieved[:1]]
    return [span for where, span in found if where == video]
