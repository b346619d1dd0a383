"""Questions as people ask first: right, rightly declined, wrong, and wrong with high confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.confidence import ConfidenceLevel, level
from evals.asking import Batch, Told, ask_all
from evals.bars import Bar
from evals.first_questions import FirstQuestion
from flows.workspace import Workspace

RIGHT = 80.0
"""Percent that must be right or rightly declined."""


@dataclass(frozen=True)
class FirstAnswer:
    """An answer judged. ``text`` is what was answered; ``confidence`` is in [0, 1]."""

    question: FirstQuestion
    right: bool
    declined: bool
    confidence: float
    text: str
    top: tuple[float, float] | None

    @property
    def sure(self) -> bool:
        """Whether it is wrong with high confidence."""
        return not self.right and level(self.confidence) is ConfidenceLevel.HIGH


@dataclass(frozen=True)
class FirstRow:
    """What the answers of one kind, or all, come to."""

    name: str
    questions: int
    right: int
    declined: int
    wrong: int
    sure: int


@dataclass(frozen=True)
class FirstReport:
    """What the evaluation found. ``absent`` are clips that are not there, not asked about."""

    answers: tuple[FirstAnswer, ...]
    kinds: tuple[FirstRow, ...]
    every: FirstRow
    absent: tuple[str, ...]
    errors: dict[str | int, str]
    seconds: float

    @property
    def bars(self) -> list[Bar]:
        """What must be reached."""
        good = self.every.right + self.every.declined
        share = 100 * good / max(1, self.every.questions)
        return [
            Bar("right or rightly declined, percent", share, RIGHT),
            Bar("wrong with high confidence", self.every.sure, 0, most=True),
        ]


def evaluate(
    desk: Workspace,
    questions: Sequence[FirstQuestion],
    ids: dict[str, str],
    absent: tuple[str, ...],
    out: Path | None,
    told: Told,
) -> FirstReport:
    """Ask the questions about the clips in ``ids`` and judge the answers."""
    asked = [question for question in questions if question.video in ids]
    batch = ask_all(desk, [q.asked_of(ids[q.video]) for q in asked], out, told)
    answers = tuple(judge(question, batch) for question in asked)
    kinds = dict.fromkeys(one.question.kind for one in answers)
    return FirstReport(
        answers=answers,
        kinds=tuple(row(k, [a for a in answers if a.question.kind == k]) for k in kinds),
        every=row("all", answers),
        absent=absent,
        errors=batch.errors,
        seconds=batch.seconds,
    )


def judge(question: FirstQuestion, batch: Batch) -> FirstAnswer:
    """One answer judged; without an answer line nothing is right."""
    line: dict[str, Any] | None = batch.lines.get(question.id)
    if line is None:
        return FirstAnswer(question, False, False, 0.0, "", None)
    tops = [(one["start_s"], one["end_s"]) for one in line["citations"][:1]]
    return FirstAnswer(
        question=question,
        right=question.right.met_by(line),
        declined=bool(line.get("declined") or line.get("not_in_memory")),
        confidence=line["confidence"],
        text=line["answer"],
        top=tops[0] if tops else None,
    )


def row(name: str, answers: Sequence[FirstAnswer]) -> FirstRow:
    """What answers come to."""
    good = [one for one in answers if one.right]
    declined = sum(one.declined for one in good)
    return FirstRow(
        name=name,
        questions=len(answers),
        right=len(good) - declined,
        declined=declined,
        wrong=len(answers) - len(good),
        sure=sum(one.sure for one in answers),
    )
