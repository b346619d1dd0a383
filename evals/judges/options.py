"""Multiple choice: judged by code alone, by the chosen letter."""

from __future__ import annotations

from domain.asking import Answer
from domain.evaluation import Verdict
from evals.dataset import EvalQuestion

NAME = "options"
ANSWERS_WITHHELD = "the data set keeps its answer to itself"


def judge_options(question: EvalQuestion, answer: Answer) -> Verdict:
    """Judge the chosen option; unjudged if the set has no reference."""
    if not question.answer:
        return Verdict(right=None, judge=NAME, why=ANSWERS_WITHHELD)
    right = answer.option == question.answer
    why = f"chose {answer.option or 'nothing'}, right is {question.answer}"
    return Verdict(right=right, judge=NAME, why=why)
