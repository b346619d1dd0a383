"""The report of a run, computed from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent.reasoners.concluding import kind_of
from agent.strategy import AUTO
from domain.evaluation import (
    BASELINE_ARM,
    WITH_SKILLS,
    WITHOUT_SKILLS,
    ErrorType,
    EvaluationRun,
    QuestionPart,
    RunSettings,
)
from domain.evaluation_options import AblationStage, Protocol
from evals.auto_report import auto_report
from evals.calibration import reliability
from evals.dataset import EvalQuestion
from evals.paired import effect
from evals.tables import (
    ALL,
    AnsweredQuestion,
    BaselineRow,
    Point,
    RunReport,
    SkillUse,
    StrategyScore,
    by_type,
    figure,
    main_arm,
    score,
    usage,
)
from store.queries.evaluations import Result

SkillStates = Mapping[int, Mapping[str, Any]]
"""The state of the skill library after each batch (``evals.running``)."""


def row_of(result: Result, learned: Mapping[str, frozenset[str]]) -> AnsweredQuestion:
    """Convert a result to a row; ``learned`` has the videos that each skill was learned from."""
    item = EvalQuestion.model_validate(result.slot.item)
    answer, verdict = result.answer or {}, result.verdict
    verdict_fields = verdict.model_dump() if verdict else {"right": None, "judge": "", "why": ""}
    nothing = {"cited": None, "top": None, "iou": None, "ref300": None, "fault": None}
    return AnsweredQuestion(
        arm=result.slot.arm,
        part=result.slot.part,
        batch=result.slot.batch,
        id=item.id,
        video=item.video,
        types=item.types or (str(kind_of(item.question)),),
        question=item.question,
        options=item.options,
        reference=item.answer,
        answer=str(answer.get("text") or ""),
        option=str(answer.get("option") or ""),
        confidence=answer.get("confidence"),
        raw=answer.get("raw_confidence"),
        **({**nothing, "failed": False} | verdict_fields),
        rounds=result.rounds,
        tokens=result.tokens,
        seconds=result.seconds,
        cost_usd=result.cost_usd,
        skills=result.skills,
        leaked=tuple(s for s in result.skills if result.slot.video in learned.get(s, ())),
        trajectory=result.trajectory or "",
        strategy=result.strategy,
        chosen_by=result.chosen_by,
    )


def report(
    run: EvaluationRun,
    rows: Sequence[AnsweredQuestion],
    skill_states: SkillStates,
    cost_usd: float,
) -> RunReport:
    """Return the report of a run; questions without a verdict are not counted."""
    settings, main = run.settings, main_arm(run.settings)
    judged = [row for row in rows if row.judge]
    arms = _arms(settings)
    arms_shown = (*arms, BASELINE_ARM) if settings.baseline else arms
    tested = {arm: _of(judged, arm, QuestionPart.TEST) for arm in arms_shown}
    online, auto = settings.protocol is Protocol.ONLINE, auto_report(judged, settings)
    return RunReport(
        run=run,
        main=main,
        remarks=(
            *_remarks(run, [*tested[main], *tested.get(AUTO, ())], online=online),
            *_of_judge(settings, tested[main]),
            *_of_no_model(settings),
            *([auto.verdict] if auto else []),
        ),
        scores=tuple(
            type_score
            for arm in sorted(arms_shown, key=lambda arm: arm != main)
            for type_score in by_type(arm, tested[arm])
        ),
        ablation=tuple(_ablation(tested, settings.stages)),
        usage=tuple(usage(arm, tested[arm]) for arm in arms),
        faults={arm: _faults(tested[arm]) for arm in arms},
        curve=tuple(
            sorted(_curve(judged, arms, skill_states), key=lambda type_score: type_score.batch)
        ),
        skills=tuple(_skills([r for r in judged if r.arm == main], skill_states)),
        effect=effect(WITHOUT_SKILLS, WITH_SKILLS, tested[WITHOUT_SKILLS], tested[WITH_SKILLS])
        if WITH_SKILLS in arms
        else None,
        reliability=reliability(tested[main]),
        beside=tuple(_compared(tested[BASELINE_ARM], tested[main], main))
        if settings.baseline
        else (),
        strategies=tuple(_strategies(tested, settings, main)),
        auto=auto,
        cost_usd=cost_usd,
        questions=tuple(rows),
    )


def _compared(
    plain: Sequence[AnsweredQuestion], rows: Sequence[AnsweredQuestion], main: str
) -> Iterator[BaselineRow]:
    """Compare the run with the baseline on the same questions: all, then type by type."""
    for kind in (ALL, *sorted({kind for row in rows for kind in row.types})):
        before, after = (
            [r for r in answers if kind in (ALL, *r.types)] for answers in (plain, rows)
        )
        if difference := effect(BASELINE_ARM, main, before, after):
            yield BaselineRow(type=kind, effect=difference)


def _arms(settings: RunSettings) -> tuple[str, ...]:
    if settings.protocol is Protocol.NONE or AUTO in settings.strategies:
        return (*map(str, settings.stages), *settings.strategies)
    return WITHOUT_SKILLS, WITH_SKILLS


def _of(rows: Iterable[AnsweredQuestion], arm: str, part: QuestionPart) -> list[AnsweredQuestion]:
    return [row for row in rows if (row.arm, row.part) == (arm, part)]


def _ablation(
    tested: Mapping[str, Sequence[AnsweredQuestion]], stages: Sequence[AblationStage]
) -> Iterator[Any]:
    if len(stages) > 1:
        yield from (score(str(stage), stage.value, tested[str(stage)]) for stage in stages)


def _strategies(
    tested: Mapping[str, Sequence[AnsweredQuestion]], settings: RunSettings, main: str
) -> Iterator[StrategyScore]:
    """Yield the strategy of the settings, then each other one beside it."""
    if not settings.strategies:
        return
    own, rows = settings.ask.strategy, tested[main]
    yield StrategyScore(strategy=own, score=score(main, ALL, rows), usage=usage(main, rows))
    for name in settings.strategies:
        yield StrategyScore(
            strategy=name,
            score=score(name, ALL, tested[name]),
            usage=usage(name, tested[name]),
            effect=effect(own, name, rows, tested[name]),
        )


def _faults(rows: Iterable[AnsweredQuestion]) -> dict[ErrorType, int]:
    counted = Counter(row.fault for row in rows if row.fault is not None)
    return {fault: counted[fault] for fault in ErrorType if counted[fault]}


def _remarks(
    run: EvaluationRun, rows: Sequence[AnsweredQuestion], *, online: bool
) -> Iterator[str]:
    """Yield what a reader must know before the figures."""
    if run.state != "done":
        yield f"The run is {run.state}{': ' + run.note if run.note else ''}."
    whys = Counter(row.why for row in rows if row.right is None)
    for why, count in whys.most_common():
        yield f"{_answers(count)} unjudged: {why}. They count neither as right nor as wrong."
    if failed := sum(row.failed and row.right is False for row in rows):
        yield (
            f"{_answers(failed)} missing since a model failed; they count as wrong. "
            "The same command asks them again."
        )
    if online:
        yield (
            "Online protocol: it learned from the answers to the very questions that it is tested "
            "on, each batch before the next."
        )
    elif leaked := sum(bool(row.leaked) for row in rows):
        yield (
            f"{leaked} tested questions had a skill that was learned from questions about their "
            "own video, in another run."
        )


def _of_judge(settings: RunSettings, rows: Sequence[AnsweredQuestion]) -> Iterator[str]:
    """Yield a warning if a model judges its own answers."""
    own = sum(row.judge == settings.judge != "" for row in rows)
    if own and settings.reasoner == "llm" and settings.judge == _answerer(settings):
        yield (
            f"{settings.judge} judges {own} open answers that it gave itself: it may favour them. "
            "Give the profile a [chat.judge] of another model."
        )


def _answerer(settings: RunSettings) -> str:
    """Return the language model that answers: that of its role, else the profile's default."""
    models = dict(line.partition(": ")[::2] for line in settings.models)
    return models.get("reasoner") or models.get("default", "")


def _of_no_model(settings: RunSettings) -> Iterator[str]:
    if settings.reasoner == "local" and len(settings.stages) > 1:
        yield (
            "Without a language model an answer is concluded from all moments that are remembered: "
            "the stages change how it is searched for, hardly what it is."
        )


def _answers(count: int) -> str:
    return "1 answer is" if count == 1 else f"{count} answers are"


def _curve(
    rows: Sequence[AnsweredQuestion], arms: Sequence[str], skill_states: SkillStates
) -> Iterator[Point]:
    """Yield the points of each arm, batch after batch; only for runs that learn."""
    if WITH_SKILLS not in arms:
        return
    for arm in arms:
        for part in QuestionPart:
            answered = _of(rows, arm, part)
            for batch in sorted({row.batch for row in answered}):
                yield _point(arm, part, batch, answered, skill_states)


def _point(
    arm: str,
    part: QuestionPart,
    batch: int,
    answered: Sequence[AnsweredQuestion],
    skill_states: SkillStates,
) -> Point:
    in_batch = [row for row in answered if row.batch == batch]
    earlier = [skill_states[n] for n in sorted(skill_states) if n < batch]
    return Point(
        arm=arm,
        part=part,
        batch=batch,
        answers=len(in_batch),
        right=figure(row.right for row in in_batch),
        so_far=figure(row.right for row in answered if row.batch <= batch),
        given=sum(bool(row.skills) for row in in_batch) / len(in_batch),
        in_use=len(earlier[-1]["in_use"]) if earlier else 0,
    )


def _skills(rows: Sequence[AnsweredQuestion], skill_states: SkillStates) -> Iterator[SkillUse]:
    """Yield every skill of the run, in the order of their first batch."""
    since: dict[str, int] = {}
    for batch in sorted(skill_states):
        for name in (*skill_states[batch]["in_use"], *skill_states[batch]["banned"]):
            since.setdefault(name, batch)
    for name, batch in sorted(since.items(), key=lambda pair: (pair[1], pair[0])):
        given = [row for row in rows if name in row.skills]
        yield SkillUse(
            name=name,
            since=batch,
            versions=max((s["in_use"].get(name, 0) for s in skill_states.values()), default=0),
            banned_after=min(
                (n for n, s in skill_states.items() if name in s["banned"]), default=None
            ),
            given=len(given),
            right=figure(row.right for row in given),
        )
