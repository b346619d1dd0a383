"""Learning from judged answers: recurring patterns become skills; harmful ones are banned.

Section 3. Everything that a batch changes is in the store when it returns: a killed learner resumes
with the answers it had not learned from. So is learned which strategy, and how many rounds, suit
which questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain import faults
from domain.asking import Mode
from domain.base import Frozen
from domain.errors import InputError, ModelError
from domain.settings import AskSettings
from domain.skills import (
    ComparedAnswer,
    ComparisonKey,
    JudgedTrajectory,
    Pattern,
    Policy,
    Share,
    Signal,
    Skill,
)
from domain.trajectory import Assessed, Ended, EvidenceRetrieved, QuestionAsked
from skills.writer import (
    Example,
    SkillWriter,
    Words,
    common_words,
    course_of,
    description,
    masked,
    review,
    signals,
)
from store.queries import learning
from store.queries import skills as stored
from store.queries.learning import JudgedRun, judged_runs
from store.queries.trajectories import events_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store


LEAST_QUESTIONS = 8
"""Questions that strategies must share to be compared: as many as make a pattern (section 3)."""


@dataclass(frozen=True)
class BestStrategy:
    """The strategy that answered most of the compared questions rightly.

    ``rounds``: as many as its right answers took at most. ``runs`` are all compared answers.
    """

    strategy: str
    rounds: int
    runs: tuple[JudgedRun, ...]


# The answers that several strategies gave to the same questions are compared, for each type of
# question. What answered most of them rightly becomes a skill, which is routed, refined and banned
# like any other.
def learn_strategies(store: Store, words: Words) -> tuple[list[Skill], list[str]]:
    """Make or refine the skills that choose a strategy.

    Returns:
        The new and changed skills, and for each that does not pass the review, why.
    """
    with store.begin() as session:
        runs = judged_runs(session)
    written: list[Skill] = []
    refused: list[str] = []
    for kind in sorted({run.question_type for run in runs}):
        best = best_strategy([run for run in runs if run.question_type == kind])
        if best is None:
            continue
        pattern = Pattern(signal=Signal.STRATEGY, question_type=kind)
        try:
            written += _stored(store, pattern, best, words)
        except InputError as error:
            refused.append(f"{pattern.name}: {error}")
    return written, refused


def best_strategy(
    runs: Iterable[JudgedRun], default: str = AskSettings().strategy
) -> BestStrategy | None:
    """Return the strategy that answered most of the same questions rightly.

    Of equals the default counts as the best, then the one that took fewer rounds.

    Args:
        runs: judged answers to questions of one type; the last one by a strategy counts.
        default: the strategy that is asked where nothing was learned.

    Returns:
        None where no two strategies share enough questions, or none answered any rightly.
    """
    latest = {(run.strategy, run.asked): run for run in runs}
    asked: dict[str, frozenset[str]] = {}
    for strategy, question in latest:
        asked[strategy] = asked.get(strategy, frozenset()) | {question}
    # Those with the most questions come first; one that leaves too few in common is left out.
    strategies: list[str] = []
    in_all: frozenset[str] = frozenset()
    for strategy in sorted(asked, key=lambda one: (-len(asked[one]), one)):
        common = asked[strategy] & in_all if strategies else asked[strategy]
        if len(common) >= LEAST_QUESTIONS:
            strategies.append(strategy)
            in_all = common
    shared = sorted(in_all)
    if len(strategies) < 2:
        return None
    compared = {one: [latest[one, question] for question in shared] for one in strategies}

    def merit(strategy: str) -> tuple[int, bool, int, str]:
        answers = compared[strategy]
        rounds = sum(run.rounds for run in answers)
        return -sum(run.right for run in answers), strategy != default, rounds, strategy

    best = min(strategies, key=merit)
    rounds = [run.rounds for run in compared[best] if run.right]
    if not rounds:
        return None
    every = tuple(run for one in strategies for run in compared[one])
    return BestStrategy(best, max([1, *rounds]), every)


def _stored(store: Store, pattern: Pattern, best: BestStrategy, words: Words) -> list[Skill]:
    """Store the skill of a pattern unless it chooses the same already.

    Raises:
        InputError: it does not pass the review.
    """
    with store.begin() as session:
        known = learning.latest_skill_version(session, pattern.name)
        if known is not None and known.policy == _policy(best):
            return []
        skill = strategy_skill(pattern, best, words, version=known.version + 1 if known else 1)
        trajectories = [run.trajectory for run in best.runs]
        answers = learning.answers_of(session, trajectories)
        if found := review(skill, stored.names_of_people(session), answers):
            raise InputError("; ".join(found))
        stored.add_version(session, skill)
        runs = best.runs
        for run in runs:
            judged = JudgedTrajectory(
                trajectory=run.trajectory, question_type=run.question_type, right=run.right
            )
            learning.add_observations(session, judged, [pattern.signal])
        learning.link_observations(session, pattern, [run.trajectory for run in runs], skill)
    faults.fault_point(faults.FaultPoint.SKILL_WRITTEN)
    return [skill]


def strategy_skill(
    pattern: Pattern, best: BestStrategy, words: Words, *, version: int = 1
) -> Skill:
    """Word the skill that chooses a strategy for the questions of a pattern."""
    questions = list({run.asked: run.text for run in best.runs}.values())
    triggers = common_words(questions, words)
    rounds = "one round" if best.rounds == 1 else f"{best.rounds} rounds"
    return Skill(
        name=pattern.name,
        version=version,
        topic=pattern.signal.topic,
        tone=pattern.signal.tone,
        description=description(pattern, triggers),
        triggers=triggers,
        instructions=(f"Ask {best.strategy}, in at most {rounds}: it answered most rightly.",),
        policy=_policy(best),
    )


def _policy(best: BestStrategy) -> Policy:
    return Policy(strategy=best.strategy, rounds=best.rounds)


# Detects skills that do harm: questions do worse with them than without (section 3).
#
# Only comparable answers are compared: to questions of one type, by one profile, in one run over
# one data set. A skill is measured against the answers of other questions only.

LEAST_USES = 5
MARGIN = 0.05
ALL_WRONG = 3
"""Uses after which a skill that helped none is banned."""

Shares = Mapping[ComparisonKey, Share]
"""How often answers are right, by what makes them comparable."""


def is_harmful(given: Sequence[ComparedAnswer], own_shares: Shares, all_shares: Shares) -> bool:
    """Check whether a skill does harm.

    Args:
        given: judged answers to questions that were given the skill as it is now.
        own_shares: shares right of all answers that were given it, in any version.
        all_shares: shares right of all answers.
    """
    judged = [answer for answer in given if answer.right is not None]
    if len(judged) >= ALL_WRONG and not any(answer.right for answer in judged):
        return True
    usual = usual_without(own_shares, all_shares)
    comparable = [answer for answer in judged if answer.alike in usual]
    if len(comparable) < LEAST_USES:
        return False
    rights = sum(bool(answer.right) for answer in comparable)
    expected = sum(usual[answer.alike] for answer in comparable)
    return rights / len(comparable) < expected / len(comparable) - MARGIN


def shares(answers: Iterable[ComparedAnswer]) -> Shares:
    """Count how often judged answers are right."""
    counted: dict[ComparisonKey, Share] = {}
    for answer in answers:
        if answer.right is not None:
            judged, right = counted.get(answer.alike, Share(0, 0))
            counted[answer.alike] = Share(judged + 1, right + answer.right)
    return counted


def usual_without(own_shares: Shares, all_shares: Shares) -> dict[ComparisonKey, float]:
    """Return the share right among the other answers; absent where there are none."""
    others = {
        alike: (every.judged - own.judged, every.right - own.right)
        for alike, every in all_shares.items()
        for own in [own_shares.get(alike, Share(0, 0))]
    }
    return {alike: right / judged for alike, (judged, right) in others.items() if judged > 0}


BATCH = 64
PROMOTED_AT = 8
"""How many observations of a pattern make a skill, and again how many refine it."""


class LearningResult(Frozen):
    """What a batch changed. ``refused``: patterns that gave no valid skill, and why."""

    answers: int
    observations: int
    written: tuple[Skill, ...] = ()
    refused: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


def judge(store: Store, judged: JudgedTrajectory) -> None:
    """Record whether an answer is right; a later judgement replaces an earlier one.

    Raises:
        NotFound: there is no such trajectory.
    """
    with store.begin() as session:
        learning.put_judgement(session, judged)


def recorded_judgement(store: Store, trajectory: str) -> bool | None:
    """Return whether an answer was judged right; None without a judgement."""
    with store.begin() as session:
        row = learning.judgement_of(session, trajectory)
    return row.right if row else None


def count_waiting(store: Store) -> int:
    """Count the judged answers that were not learned from yet."""
    with store.begin() as session:
        return learning.count_unlearned(session)


def learn(store: Store, writer: SkillWriter, words: Words) -> LearningResult:
    """Learn from at most one batch of newly judged answers."""
    with store.begin() as session:
        batch = learning.unlearned_judgements(session, BATCH)
        count = sum(_observe(session, judged) for judged in batch)
    faults.fault_point(faults.FaultPoint.OBSERVED)
    # Make skills of the patterns that recur; failed ones are tried again next time.
    with store.begin() as session:
        recurring = learning.recurring_patterns(session, PROMOTED_AT, BATCH)
    written: list[Skill] = []
    refused: list[str] = []
    for pattern, trajectories in recurring:
        try:
            written.append(_make_skill(store, writer, words, pattern, trajectories))
        except (InputError, ModelError) as error:
            refused.append(f"{pattern.name}: {error}")
    chosen, unfit = learn_strategies(store, words)
    with store.begin() as session:
        # Ban the harmful skills in use; what they are compared with is computed once for all.
        answers = {
            comparable.trajectory: comparable for comparable in learning.comparable_answers(session)
        }
        all_shares, given = shares(answers.values()), stored.trajectories_by_skill(session)
        banned = []
        for row in stored.latest_versions(session):
            uses = [use for use in given.get(row.skill.name, ()) if use[0] in answers]
            own_shares = shares(answers[name] for name in {trajectory for trajectory, _ in uses})
            current = [answers[one] for one, version in uses if version == row.skill.version]
            if not row.banned and is_harmful(current, own_shares, all_shares):
                stored.set_banned(session, row.skill.name, banned=True)
                banned.append(row.skill.name)
    faults.fault_point(faults.FaultPoint.BANNED)
    return LearningResult(
        answers=len(batch),
        observations=count,
        written=(*written, *chosen),
        refused=(*refused, *unfit),
        banned=tuple(banned),
    )


def _observe(session: Session, judged: JudgedTrajectory) -> int:
    """Record the signals of an answer, once."""
    learning.mark_learned(session, judged.trajectory)
    events = events_of(session, judged.trajectory)
    course = course_of(events)
    # Skills advise nobody who uses other tools than those that search by modes.
    searches = (event for event in events if isinstance(event, EvidenceRetrieved))
    by_modes = all(isinstance(event.mode, Mode) for event in searches)
    if judged.right is None or course is None or not by_modes:
        return 0
    question_event = next(event for event in events if isinstance(event, QuestionAsked))
    observed = signals(course, question_event.setup.settings.attempts, right=judged.right)
    learning.add_observations(session, judged, observed)
    return len(observed)


def _make_skill(
    store: Store,
    writer: SkillWriter,
    words: Words,
    pattern: Pattern,
    trajectories: Sequence[str],
) -> Skill:
    """Make and store the skill for a pattern, with its observations.

    Raises:
        InputError: the skill does not pass the review.
        ModelError: the skill could not be written.
    """
    with store.begin() as session:
        known = learning.latest_skill_version(session, pattern.name)
        examples = [_example(session, name, words) for name in trajectories]
        names, answers = stored.names_of_people(session), learning.answers_of(session, trajectories)
    draft = writer.write(pattern, examples, known, words)
    skill = draft.model_copy(update={"version": known.version + 1 if known else 1})
    if faults_found := review(skill, names, answers):
        raise InputError("; ".join(faults_found))
    with store.begin() as session:
        # The writer may have taken minutes, and a person may have stored one meanwhile.
        if learning.latest_skill_version(session, pattern.name) != known:
            raise InputError("it was changed while it was written: the next run writes it anew")
        stored.add_version(session, skill)
        learning.link_observations(session, pattern, trajectories, skill)
    faults.fault_point(faults.FaultPoint.SKILL_WRITTEN)
    return skill


def _example(session: Session, trajectory: str, words: Words) -> Example:
    events = events_of(session, trajectory)
    question = next(event for event in events if isinstance(event, QuestionAsked)).question.text
    course = course_of(events)
    assert course is not None  # noqa: S101 - it was observed, so it ended
    searches = [e for e in events if isinstance(e, EvidenceRetrieved) and e.round > 0]
    gains = {e.round: e.increment for e in events if isinstance(e, Assessed)}
    judged = learning.judgement_of(session, trajectory)
    answers = [e.answer.text for e in events if isinstance(e, Ended) and e.answer is not None]
    verdict = f"{'right' if judged and judged.right else 'wrong'}, {course.confidence:.0%} sure"
    return Example(
        trajectory,
        question,
        course,
        modes=tuple(event.mode for event in searches if isinstance(event.mode, Mode)),
        searches=tuple(
            f"{e.mode} (+{gains.get(e.round, 0):.0%}): {masked(e.query, question, words)}"
            for e in searches
        ),
        answer=f"{verdict}: {masked(answers[-1], question, words)}",
    )
