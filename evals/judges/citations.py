"""Citation precision: whether the citations of an answer hold the evidence."""

from __future__ import annotations

from typing import TypedDict

from domain.asking import Answer
from evals.dataset import EvalQuestion
from evals.judges.spans import touches


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
