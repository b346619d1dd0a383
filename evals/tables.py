"""What evaluations found: means with intervals, rows of tables, points of curves, bars.

Shapes alone, which are there at once: ``homer eval run --help`` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, NonNegativeInt, computed_field
from pydantic.dataclasses import dataclass

from domain.base import Frozen
from domain.evaluation import AnswerUsage, ErrorType, EvaluationRun, QuestionPart, Verdict

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


class AnsweredQuestion(Verdict, AnswerUsage):
    """One question of a run in one arm, with all that is known of its answer, and its verdict.

    ``right``: None is unjudged, or not answered yet (``judge`` is then "").
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
    leaked: tuple[str, ...]
    trajectory: str


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


class ArmUsage(Frozen):
    """The cost of an answer in one arm: means, and the dollars for all."""

    arm: str
    questions: NonNegativeInt
    rounds: float
    tokens: float
    seconds: float
    cost_usd: float
    total_usd: float


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


class RunOutcome(RunReport):
    """The report of a run that was just gone on with.

    ``left_out``: videos that could not be asked about, and why; ``over``: the money is spent;
    ``imported_s``: the seconds that importing took, None where anything was in memory already;
    ``asking_s``: the seconds that asking and judging took.
    """

    left_out: Mapping[str, str]
    over: bool
    imported_s: float | None = None
    asking_s: float = 0.0

    @property
    def exit_code(self) -> int:
        """The code of a command: 5 where the money is spent, 4 where a video is left out."""
        return 5 if self.over else 4 if self.left_out else 0


# Evaluations with a target.


@dataclass(frozen=True)
class Bar:
    """A figure and its limit: at least ``limit``, or at most, if ``most`` is set."""

    name: str
    value: float
    limit: float
    most: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def met(self) -> bool:
        """Check whether the figure meets the limit, which is itself enough."""
        return self.value <= self.limit if self.most else self.value >= self.limit


@dataclass(frozen=True)
class Row:
    """Figures over so many answers: shares with their intervals, counts, seconds."""

    name: str
    questions: NonNegativeInt
    figures: Mapping[str, MeanInterval | float | None]


@dataclass(frozen=True)
class Measure:
    """A measure of a data set, and the baseline's if there is one."""

    dataset: str
    measure: str
    ours: MeanInterval
    plain: MeanInterval | None = None
    exit_code: Annotated[int, Field(exclude=True)] = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def above(self) -> float | None:
        """Return the share above the baseline's."""
        return None if self.plain is None else self.ours.value - self.plain.value


class Findings(Frozen):
    """What was found in answers to a data set, beside what they are to reach.

    ``measures`` are the figures that data sets are compared by. ``wrong`` says of each answer in a
    line why it is wrong.
    """

    tables: Mapping[str, tuple[Row, ...]] = {}
    measures: tuple[Measure, ...] = ()
    bars: tuple[Bar, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Measured(Findings):
    """What was found in the run ``run``.

    ``absent`` are videos that are not there, and ``left_out`` those that could not be asked about.
    ``seconds`` is what asking took.
    """

    dataset: str
    run: str
    questions: NonNegativeInt
    absent: tuple[str, ...] = ()
    left_out: Mapping[str, str] = {}
    seconds: float

    @property
    def exit_code(self) -> int:
        """The code of a command: 4 where a video is left out, 1 where a bar is missed."""
        return 4 if self.left_out else int(not all(bar.met for bar in self.bars))
