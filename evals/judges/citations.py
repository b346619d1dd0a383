"""Citation precision: does what an answer cites hold the evidence?"""

from __future__ import annotations

from typing import TypedDict

from domain.asking import Answer
from evals.dataset import EvalQuestion
from evals.judges.spans import touches


class Precision(TypedDict):
    """The share of citations that hold marked evidence, and whether the first one does.

    None where the reference has no spans; an answer that cites nothing has no share, and its first
    citation holds nothing.
    """

    cited: float | None
    top: bool | None


def judge_citations(question: EvalQuestion, answer: Answer, video: str) -> Precision:
    """A citation holds evidence where its span shares a moment with a marked one."""
    if not question.spans:
        return Precision(cited=None, top=None)
    hits = [c.video == video and touches(c.span, question.spans) for c in answer.citations]
    share = sum(hits) / len(hits) if hits else None
    return Precision(cited=share, top=bool(hits) and hits[0])
