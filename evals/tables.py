"""What the results of a run come to: figures with intervals, rows of tables, points of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import NonNegativeInt

from domain.base import Frozen
from domain.choices import AblationStage, Protocol
from domain.evaluation import WITH, ErrorType, QuestionPart, RunSettings
from evals.sampling import interval, mean

ALL = "all"
"""The type under which all questions are counted."""
WITHIN = 0.10
"""How far the share right may be from what was said."""


class MeanInterval(Frozen):
    """A mean with the ends of its bootstrap interval (the middle 90 %), over ``of`` answers."""

    value: float
    low: float
    high: float
    of: NonNegativeInt


def figure(values: Iterable[float | bool | None]) -> MeanInterval | None:
    """The mean of what is known; None of nothing. Shares are in [0, 1]."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    low, high = interval(known)
    return MeanInterval(value=mean(known), low=low, high=high, of=len(known))


class AnsweredQuestion(Frozen):
    """One question of a run in one arm, with all that is known of its answer.

    ``right``: None is unjudged, or not answered yet (``judge`` is then ""). ``failed``: there is no
    answer, or no verdict, since a model failed. Times and money are of the answer alone.
    """

    arm: str
    part: QuestionPart
    batch: NonNegativeInt
    id: str
    video: str
    types: tuple[str, ...]
    question: str
    options: tuple[str, ...]
    reference: str
    answer: str
    option: str
    confidence: float | None = None
    raw: float | None = None
    right: bool | None
    judge: str
    why: str
    cited: float | None
    top: bool | None
    iou: float | None
    ref300: float | None
    fault: ErrorType | None
    failed: bool
    rounds: NonNegativeInt
    tokens: NonNegativeInt
    seconds: float
    cost_usd: float
    skills: tuple[str, ...]
    leaked: tuple[str, ...]
    trajectory: str


class TypeScore(Frozen):
    """What answers come to: of one type of question in one arm, or of all."""

    arm: str
    type: str
    questions: NonNegativeInt
    unjudged: NonNegativeInt
    right: MeanInterval | None
    cited: MeanInterval | None
    top: MeanInterval | None
    iou: MeanInterval | None
    ref300: MeanInterval | None


def score(arm: str, kind: str, rows: Sequence[AnsweredQuestion]) -> TypeScore:
    """What rows come to."""
    return TypeScore(
        arm=arm,
        type=kind,
        questions=len(rows),
        unjudged=sum(row.right is None for row in rows),
        right=figure(row.right for row in rows),
        cited=figure(row.cited for row in rows),
        top=figure(row.top for row in rows),
        iou=figure(row.iou for row in rows),
        ref300=figure(row.ref300 for row in rows),
    )


def by_type(arm: str, rows: Sequence[AnsweredQuestion]) -> list[TypeScore]:
    """All, then each type by name; a question of several types counts for each."""
    kinds = sorted({kind for row in rows for kind in row.types})
    return [
        score(arm, ALL, rows),
        *(score(arm, kind, [row for row in rows if kind in row.types]) for kind in kinds),
    ]


class ArmUsage(Frozen):
    """What an answer takes in one arm: means, and dollars for all."""

    arm: str
    questions: NonNegativeInt
    rounds: float
    tokens: float
    seconds: float
    cost_usd: float
    total_usd: float


def usage(arm: str, rows: Sequence[AnsweredQuestion]) -> ArmUsage:
    """What rows took."""
    return ArmUsage(
        arm=arm,
        questions=len(rows),
        rounds=mean([row.rounds for row in rows]),
        tokens=mean([row.tokens for row in rows]),
        seconds=mean([row.seconds for row in rows]),
        cost_usd=mean([row.cost_usd for row in rows]),
        total_usd=sum(row.cost_usd for row in rows),
    )


class Point(Frozen):
    """A batch on the evolution curve of one arm.

    ``so_far`` is the share right of this and all batches before it of the same part; ``given`` the
    share of the questions that had a skill; ``in_use`` how many skills there were by then.
    """

    arm: str
    part: QuestionPart
    batch: NonNegativeInt
    answers: NonNegativeInt
    right: MeanInterval | None
    so_far: MeanInterval | None
    given: float
    in_use: NonNegativeInt


class SkillUse(Frozen):
    """A skill in a run: after which batch it came (-1: it was there before), and how it did.

    ``banned_after``: the batch after which it was out of use. ``right``: of the questions that had
    it.
    """

    name: str
    since: int
    versions: NonNegativeInt
    banned_after: int | None
    given: NonNegativeInt
    right: MeanInterval | None


class Effect(Frozen):
    """Two ways of answering the same questions, paired: ``better`` are right only the second way.

    ``difference`` is the second minus the first, in points of 1; ``p`` of McNemar's exact test.
    """

    first: str
    second: str
    questions: NonNegativeInt
    before: MeanInterval | None
    after: MeanInterval | None
    difference: MeanInterval | None
    better: NonNegativeInt
    worse: NonNegativeInt
    p: float


class Beside(Frozen):
    """Questions of one type (or all): the run's main arm beside the baseline."""

    type: str
    effect: Effect


class RunLine(Frozen):
    """A run in a list. ``state``: running, done, stopped, or broken off (nobody works on it)."""

    name: str
    dataset: str
    profile: str
    protocol: Protocol
    state: str
    note: str
    began_at: datetime
    ended_at: datetime | None
    questions: NonNegativeInt
    planned: NonNegativeInt
    judged: NonNegativeInt


class Third(Frozen):
    """A third of the answers, by confidence: what was said on average, and what was right."""

    least: float
    most: float
    said: float
    right: MeanInterval

    @property
    def true(self) -> bool:
        """Whether what was said is within ten points of what was right."""
        return abs(self.said - self.right.value) <= WITHIN


class RunReport(Frozen):
    """All that is to be said of a run.

    ``main`` is the arm that the headline is of. Scores, faults and usage are of the questions that
    are tested on; ``faults`` counts wrong answers by arm and fault.
    """

    run: RunLine
    settings: RunSettings
    main: str
    remarks: tuple[str, ...]
    scores: tuple[TypeScore, ...]
    ablation: tuple[TypeScore, ...]
    usage: tuple[ArmUsage, ...]
    faults: Mapping[str, Mapping[ErrorType, int]]
    curve: tuple[Point, ...]
    skills: tuple[SkillUse, ...]
    effect: Effect | None
    beside: tuple[Beside, ...] = ()
    reliability: tuple[Third, ...] = ()
    cost_usd: float

    @property
    def headline(self) -> TypeScore:
        """The score of all questions in the main arm."""
        return next(one for one in self.scores if (one.arm, one.type) == (self.main, ALL))


def main_arm(settings: RunSettings) -> str:
    """The arm that a run's headline is of: with skills, or with the whole memory."""
    return str(AblationStage.WHOLE) if settings.protocol is Protocol.NONE else WITH
