"""Temporal grounding, where a reference has spans: tIoU of what is cited, and Ref@300."""

from __future__ import annotations

from typing import TypedDict

from domain.asking import Answer
from domain.time import TimeSpan
from evals.dataset import EvalQuestion
from evals.judges.spans import distance_ms, iou

NEAR_MS = 300_000
"""How far the first moment may be from a marked one (Ref@300)."""


class Grounding(TypedDict):
    """How well an answer's moments fit the reference's; None where it has no spans."""

    iou: float | None
    near: bool | None


def judge_moments(question: EvalQuestion, answer: Answer, video: str) -> Grounding:
    """The overlap of the cited spans with the marked ones, and whether the first moment is near.

    The first moment is the first that is cited, else the first that was retrieved; without any it
    is not near. Spans of other videos than the question's count as apart.
    """
    if not question.spans:
        return Grounding(iou=None, near=None)
    cited = [one.span for one in answer.citations if one.video == video]
    gap = distance_ms(first, question.spans) if (first := _first(answer, video)) else None
    return Grounding(iou=iou(cited, question.spans), near=gap is not None and gap <= NEAR_MS)


def _first(answer: Answer, video: str) -> TimeSpan | None:
    cited = [(one.video, one.span) for one in answer.citations]
    found = cited or [(one.video, one.span) for one in answer.retrieved]
    return next((span for where, span in found[:1] if where == video), None)
