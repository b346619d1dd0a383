"""Runs on record, their reports, computed from their rows, and the lock of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.reasoners.concluding import kind_of
from agent.strategy import AUTO
from domain.errors import InputError, NotFound
from domain.evaluation import (
    BASELINE_ARM,
    WITH_SKILLS,
    WITHOUT_SKILLS,
    ErrorType,
    EvaluationRun,
    QuestionPart,
    RunSettings,
    Verdict,
)
from domain.evaluation_options import AblationStage, Protocol
from evals.dataset import EvalQuestion
from evals.statistics import effect, figure, mean, reliability
from evals.tables import (
    ALL,
    AnsweredQuestion,
    ArmUsage,
    AutoReport,
    BaselineRow,
    ChosenStrategy,
    Effect,
    Point,
    RunReport,
    SkillUse,
    StrategyScore,
    TypeScore,
)
from store.files import is_locked, try_file_lock
from store.queries import evaluations as stored
from store.queries.evaluations import Result

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store
    from store.home import Home

SkillStates = Mapping[int, Mapping[str, Any]]
"""The state of the skill library after each batch (``evals.running``)."""


def row_of(result: Result, learned: Mapping[str, frozenset[str]]) -> AnsweredQuestion:
    """Convert a result to a row; ``learned`` has the videos that each skill was learned from."""
    item = EvalQuestion.model_validate(result.slot.item)
    answer, verdict = result.answer or {}, result.verdict or Verdict(right=None, judge="")
    return AnsweredQuestion(
        **dict(verdict),
        **dict(result.took),
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
        leaked=tuple(s for s in result.took.skills if result.slot.video in learned.get(s, ())),
        trajectory=result.trajectory or "",
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
    arms: tuple[str, ...] = (WITHOUT_SKILLS, WITH_SKILLS)
    if main != WITH_SKILLS:
        arms = (*map(str, settings.stages), *settings.strategies)
    shown = (*arms, BASELINE_ARM) if settings.baseline else arms
    tested = {arm: _of(judged, arm, QuestionPart.TEST) for arm in shown}
    faults = {arm: Counter(row.fault for row in tested[arm]) for arm in arms}
    auto, learns = auto_report(judged, settings), WITH_SKILLS in arms
    return RunReport(
        run=run,
        main=main,
        remarks=tuple(_remarks(run, tested[main], tested.get(AUTO, ()), auto)),
        scores=tuple(
            one
            for arm in sorted(shown, key=lambda arm: arm != main)
            for one in by_type(arm, tested[arm])
        ),
        ablation=tuple(
            score(str(stage), stage.value, tested[str(stage)])
            for stage in settings.stages
            if len(settings.stages) > 1
        ),
        usage=tuple(usage(arm, tested[arm]) for arm in arms),
        faults={
            arm: {fault: counts[fault] for fault in ErrorType if counts[fault]}
            for arm, counts in faults.items()
        },
        curve=tuple(
            sorted(_curve(judged, arms, skill_states), key=lambda point: point.batch)
            if learns
            else ()
        ),
        skills=tuple(_skills([row for row in judged if row.arm == main], skill_states)),
        effect=effect(WITHOUT_SKILLS, WITH_SKILLS, tested[WITHOUT_SKILLS], tested[WITH_SKILLS])
        if learns
        else None,
        reliability=reliability(tested[main]),
        beside=tuple(_compared(tested.get(BASELINE_ARM, ()), tested[main], main)),
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


def _of(rows: Iterable[AnsweredQuestion], arm: str, part: QuestionPart) -> list[AnsweredQuestion]:
    return [row for row in rows if (row.arm, row.part) == (arm, part)]


def _strategies(
    tested: Mapping[str, Sequence[AnsweredQuestion]], settings: RunSettings, main: str
) -> Iterator[StrategyScore]:
    """Yield the strategy of the settings, then each other one beside it."""
    own, rows = settings.ask.strategy, tested[main]
    for name in (own, *settings.strategies) if settings.strategies else ():
        arm, beside = (main, None) if name == own else (name, tested[name])
        yield StrategyScore(
            strategy=name,
            score=score(arm, ALL, tested[arm]),
            usage=usage(arm, tested[arm]),
            effect=effect(own, name, rows, beside) if beside is not None else None,
        )


def _remarks(
    run: EvaluationRun,
    main: Sequence[AnsweredQuestion],
    of_auto: Sequence[AnsweredQuestion],
    auto: AutoReport | None,
) -> Iterator[str]:
    """Yield what a reader must know before the figures."""
    rows, settings = [*main, *of_auto], run.settings

    def answers(count: int) -> str:
        return "1 answer is" if count == 1 else f"{count} answers are"

    if run.state != "done":
        yield f"The run is {run.state}{': ' + run.note if run.note else ''}."
    for why, count in Counter(row.why for row in rows if row.right is None).most_common():
        yield f"{answers(count)} unjudged: {why}. They count neither as right nor as wrong."
    if failed := sum(row.failed and row.right is False for row in rows):
        yield (
            f"{answers(failed)} missing since a model failed; they count as wrong. "
            "The same command asks them again."
        )
    if settings.protocol is Protocol.ONLINE:
        yield (
            "Online protocol: it learned from the answers to the very questions that it is tested "
            "on, each batch before the next."
        )
    elif leaked := sum(bool(row.leaked) for row in rows):
        yield (
            f"{leaked} tested questions had a skill that was learned from questions about their "
            "own video, in another run."
        )
    # The language model that answers: that of its role, else the profile's default.
    models = dict(line.partition(": ")[::2] for line in settings.models)
    answerer = models.get("reasoner") or models.get("default", "")
    own = sum(row.judge == settings.judge != "" for row in main)
    if own and settings.reasoner == "llm" and settings.judge == answerer:
        yield (
            f"{settings.judge} judges {own} open answers that it gave itself: it may favour them. "
            "Give the profile a [chat.judge] of another model."
        )
    if settings.reasoner == "local" and len(settings.stages) > 1:
        yield (
            "Without a language model an answer is concluded from all moments that are remembered: "
            "the stages change how it is searched for, hardly what it is."
        )
    if auto is not None:
        yield auto.verdict


def _curve(
    rows: Sequence[AnsweredQuestion], arms: Sequence[str], skill_states: SkillStates
) -> Iterator[Point]:
    """Yield the points of each arm, batch after batch."""
    for arm, part in product(arms, QuestionPart):
        answered = _of(rows, arm, part)
        for batch in sorted({row.batch for row in answered}):
            here = [row for row in answered if row.batch == batch]
            earlier = [skill_states[n] for n in sorted(skill_states) if n < batch]
            yield Point(
                arm=arm,
                part=part,
                batch=batch,
                answers=len(here),
                right=figure(row.right for row in here),
                so_far=figure(row.right for row in answered if row.batch <= batch),
                given=sum(bool(row.skills) for row in here) / len(here),
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


SHARES = ("right", "cited", "top", "iou", "ref300", "m3_bench")
"""Shares that are measured of answers."""
COSTS = ("rounds", "tokens", "seconds", "cost_usd")
"""What an answer takes."""


def score(arm: str, kind: str, rows: Sequence[AnsweredQuestion]) -> TypeScore:
    return TypeScore(
        arm=arm,
        type=kind,
        questions=len(rows),
        unjudged=sum(row.right is None for row in rows),
        **{name: figure(getattr(row, name) for row in rows) for name in SHARES},
    )


def by_type(arm: str, rows: Sequence[AnsweredQuestion]) -> list[TypeScore]:
    """Score all rows, then each type by name; a question of several types counts for each."""
    kinds = sorted({kind for row in rows for kind in row.types})
    return [
        score(arm, ALL, rows),
        *(score(arm, kind, [row for row in rows if kind in row.types]) for kind in kinds),
    ]


def usage(arm: str, rows: Sequence[AnsweredQuestion]) -> ArmUsage:
    return ArmUsage(
        arm=arm,
        questions=len(rows),
        **{name: mean([getattr(row, name) for row in rows]) for name in COSTS},
        total_usd=sum(row.cost_usd for row in rows),
    )


def main_arm(settings: RunSettings) -> str:
    """Return the arm of a run's headline: with skills, or with the whole memory."""
    whole = settings.protocol is Protocol.NONE or AUTO in settings.strategies
    return str(AblationStage.WHOLE) if whole else WITH_SKILLS


# The strategy that was learned for each question, compared with the best single strategy.

CHANCE = 0.05
"""Probability of McNemar's test below which a difference is not taken to be chance."""

Arms = Mapping[str, Sequence[AnsweredQuestion]]
"""The judged answers of each strategy, by its name."""


def auto_report(rows: Sequence[AnsweredQuestion], settings: RunSettings) -> AutoReport | None:
    """Compare ``auto`` with single strategies; None where it was not asked, or nothing is judged.

    Args:
        rows: the judged answers of a run, in all arms and parts.
    """
    if AUTO not in settings.strategies:
        return None
    tested = _by_strategy(rows, settings, QuestionPart.TEST)
    learned = _by_strategy(rows, settings, QuestionPart.LEARN)
    auto = tested.pop(AUTO)
    best = _beside(best_of(tested), tested, auto)
    if best is None:
        return None
    known = best_of(learned)
    chosen = list[ChosenStrategy]()
    for strategy in sorted({row.strategy for row in auto if row.strategy}):
        by_it = [row for row in auto if row.strategy == strategy]
        chosen.append(
            ChosenStrategy(
                strategy=strategy,
                questions=len(by_it),
                learned=sum(bool(row.chosen_by) for row in by_it),
                right=figure(row.right for row in by_it),
            )
        )
    return AutoReport(
        best=best,
        learned=_beside(known, tested, auto) if known != best.first else None,
        chosen=tuple(chosen),
        verdict=verdict(best, settings.ask.strategy),
    )


def _by_strategy(
    rows: Sequence[AnsweredQuestion], settings: RunSettings, part: QuestionPart
) -> dict[str, list[AnsweredQuestion]]:
    arms = {main_arm(settings): settings.ask.strategy}
    arms |= {name: name for name in settings.strategies}
    return {name: _of(rows, arm, part) for arm, name in arms.items()}


def best_of(arms: Arms) -> str | None:
    """Return the strategy with the largest share right; of equals the first. None without any."""
    shares = {name: figure(row.right for row in rows) for name, rows in arms.items()}
    known = {name: share.value for name, share in shares.items() if share is not None}
    return max(known, key=lambda name: known[name]) if known else None


def _beside(name: str | None, arms: Arms, auto: Sequence[AnsweredQuestion]) -> Effect | None:
    return effect(name, AUTO, arms.get(name, ()), auto) if name is not None else None


def verdict(best: Effect, default: str) -> str:
    """Say whether ``auto`` is better than the best single strategy.

    Args:
        best: ``auto`` beside that one.
        default: the strategy of the settings.
    """
    points = 100 * (best.difference.value if best.difference else 0.0)
    said = f"{points:+.1f} points beside {best.first}, p = {best.p:.3f}"
    if points > 0 and best.p < CHANCE:
        return f"auto is better than the best single strategy: {said}."
    why = "within chance" if points > 0 else "no gain"
    return f"auto is not better ({said}: {why}): it stays off, and {default} is the default."


# Runs on record, and the lock of each that a process works on.

BROKEN_OFF = "broken off"


def find_run(store: Store, name: str) -> EvaluationRun:
    """Return one run.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin() as session:
        return as_it_is(store, stored_run(session, name))


def run_report(store: Store, name: str) -> RunReport:
    """Return the report of a run, which may still be in progress, with its questions.

    Raises:
        NotFound: there is no such run.
    """
    with store.begin(snapshot=True) as session:
        run, rows = stored_run(session, name), _rows(session, name)
        skill_states, cost = stored.learned_batches(session, name), stored.run_cost(session, name)
    return report(as_it_is(store, run), rows, skill_states, cost)


def tested_rows(session: Session, name: str) -> list[AnsweredQuestion]:
    """Return the questions that a run was tested on, in its main arm, answered or not.

    Raises:
        NotFound: there is no such run.
    """
    main = main_arm(stored_run(session, name).settings)
    return [r for r in _rows(session, name) if (r.arm, r.part) == (main, QuestionPart.TEST)]


def _rows(session: Session, name: str) -> list[AnsweredQuestion]:
    results = stored.run_results(session, name)
    names = sorted({skill for result in results for skill in result.took.skills})
    learned = stored.learned_videos(session, names)
    return [row_of(result, learned) for result in results]


def stored_run(session: Session, name: str) -> EvaluationRun:
    """Return a run as it is stored.

    Raises:
        NotFound: there is no such run.
    """
    matching = stored.list_runs(session, name)
    if not matching:
        raise NotFound(f"there is no run {name!r}: 'homer eval runs' lists them")
    return matching[0]


def as_it_is(store: Store, run: EvaluationRun) -> EvaluationRun:
    """Return a run, as broken off where it was left running and no process works on it."""
    if run.state != stored.RUNNING or is_locked(_lock_of(store.home, run.name)):
        return run
    return run.model_copy(update={"state": BROKEN_OFF})


def _lock_of(home: Home, name: str) -> Path:
    return home.run / f"eval-{name}.lock"


@contextmanager
def exclusive_run(home: Home, name: str) -> Iterator[None]:
    """Hold the exclusive lock of a run of this data directory.

    Raises:
        InputError: another process holds it.
    """
    with try_file_lock(_lock_of(home.make(), name)) as locked:
        if not locked:
            raise InputError(f"the run {name!r} is being worked on: wait until it is done")
        yield
