"""Figures of a run: means with intervals, rows of tables, points of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import NonNegativeInt

from agent.strategy import AUTO
from domain.base import Frozen
from domain.evaluation import WITH_SKILLS, ErrorType, EvaluationRun, QuestionPart, RunSettings
from domain.evaluation_options import AblationStage, Protocol
from evals.sampling import interval, mean

ALL = "all"
"""The name for all types together."""
WITHIN = 0.10
"""Tolerance between confidence and the share right."""


class MeanInterval(Frozen):
    """A mean with the ends of its bootstrap interval (the middle 90 %), over ``of`` answers."""

    value: float
    low: float
    high: float
    of: NonNegativeInt


def figure(values: Iterable[float | bool | None]) -> MeanInterval | None:
    """Return the mean of the known values; None of nothing. Shares are in [0, 1]."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    low, high = interval(known)
    return MeanInterval(value=mean(known), low=low, high=high, of=len(known))


class AnsweredQuestion(Frozen):
    """One question of a run in one arm, with all that is known of its answer.

    ``right``: None is unjudged, or not answered yet (``judge`` is then ""). ``failed``: without an
    answer or verdict, since a model failed. Times and costs are of the answer alone. ``strategy``
    is the one that was asked, and ``chosen_by`` the skill that it was chosen by; "" for none.
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
    m3_bench: bool | None = None
    fault: ErrorType | None
    failed: bool
    rounds: NonNegativeInt
    tokens: NonNegativeInt
    seconds: float
    cost_usd: float
    skills: tuple[str, ...]
    leaked: tuple[str, ...]
    trajectory: str
    strategy: str = ""
    chosen_by: str = ""


class TypeScore(Frozen):
    """Scores of the answers to one type of question in one arm, or to all."""

    arm: str
    type: str
    questions: NonNegativeInt
    unjudged: NonNegativeInt
    right: MeanInterval | None
    cited: MeanInterval | None
    top: MeanInterval | None
    iou: MeanInterval | None
    ref300: MeanInterval | None
    m3_bench: MeanInterval | None = None


def score(arm: str, kind: str, rows: Sequence[AnsweredQuestion]) -> TypeScore:
    """Score rows."""
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
        m3_bench=figure(row.m3_bench for row in rows),
    )


def by_type(arm: str, rows: Sequence[AnsweredQuestion]) -> list[TypeScore]:
    """Score all rows, then each type by name; a question of several types counts for each."""
    kinds = sorted({kind for row in rows for kind in row.types})
    return [
        score(arm, ALL, rows),
        *(score(arm, kind, [row for row in rows if kind in row.types]) for kind in kinds),
    ]


class ArmUsage(Frozen):
    """The cost of an answer in one arm: means, and the dollars for all."""

    arm: str
    questions: NonNegativeInt
    rounds: float
    tokens: float
    seconds: float
    cost_usd: float
    total_usd: float


def usage(arm: str, rows: Sequence[AnsweredQuestion]) -> ArmUsage:
    """Sum up the usage of rows."""
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
    """A batch on the learning curve of one arm.

    ``so_far``: the share right of this and all earlier batches of the same part; ``given``: the
    share of the questions that had a skill; ``in_use``: how many skills were in use by then.
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
    """A skill in a run: its first batch (-1: before the run), and how its questions went.

    ``banned_after``: the batch after which it was banned. ``right``: of the questions that had it.
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


class BaselineRow(Frozen):
    """Questions of one type (or all): the run's main arm and the baseline."""

    type: str
    effect: Effect


class StrategyScore(Frozen):
    """The score and cost of one strategy, and how it differs from that of the settings."""

    strategy: str
    score: TypeScore
    usage: ArmUsage
    effect: Effect | None = None


class ChosenStrategy(Frozen):
    """A strategy that ``auto`` chose: for how many questions, and how many of them by a skill."""

    strategy: str
    questions: NonNegativeInt
    learned: NonNegativeInt
    right: MeanInterval | None


class AutoReport(Frozen):
    """``auto`` on the tested half, beside single strategies, paired by question.

    ``best`` is beside the strategy that was best on the tested half itself, which nobody could know
    beforehand; ``learned`` beside the one that was best on the half that was learned from, if that
    is another. ``verdict`` says in words whether it is better than ``best``.
    """

    best: Effect
    learned: Effect | None
    chosen: tuple[ChosenStrategy, ...]
    verdict: str


class ConfidenceThird(Frozen):
    """A third of the answers, by confidence: the mean confidence and the share right."""

    least: float
    most: float
    said: float
    right: MeanInterval

    @property
    def true(self) -> bool:
        """Check whether the mean confidence is within ten points of the share right."""
        return abs(self.said - self.right.value) <= WITHIN


class RunReport(Frozen):
    """The report of a run.

    ``main`` is the arm of the headline. Scores, faults and usage are over the tested questions;
    ``faults`` counts wrong answers by arm and fault. ``questions`` are those of every arm, by arm
    and place, answered or not.
    """

    run: EvaluationRun
    main: str
    remarks: tuple[str, ...]
    scores: tuple[TypeScore, ...]
    ablation: tuple[TypeScore, ...]
    usage: tuple[ArmUsage, ...]
    faults: Mapping[str, Mapping[ErrorType, int]]
    curve: tuple[Point, ...]
    skills: tuple[SkillUse, ...]
    effect: Effect | None
    beside: tuple[BaselineRow, ...] = ()
    reliability: tuple[ConfidenceThird, ...] = ()
    strategies: tuple[StrategyScore, ...] = ()
    auto: AutoReport | None = None
    cost_usd: float
    questions: tuple[AnsweredQuestion, ...] = ()

    @property
    def headline(self) -> TypeScore:
        """Return the score of all questions in the main arm."""
        return next(
            type_score
            for type_score in self.scores
            if (type_score.arm, type_score.type) == (self.main, ALL)
        )


def main_arm(settings: RunSettings) -> str:
    """Return the arm of a run's headline: with skills, or with the whole memory."""
    whole = settings.protocol is Protocol.NONE or AUTO in settings.strategies
    return str(AblationStage.WHOLE) if whole else WITH_SKILLS
