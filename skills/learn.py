"""Learning from judged answers: recurring patterns become skills; harmful ones are banned.

Section 3. Everything that a batch changes is in the store when it returns: a killed learner resumes
with the answers it had not learned from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from domain import faults
from domain.asking import Mode
from domain.base import Frozen
from domain.errors import InputError, ModelError
from domain.skills import ComparedAnswer, ComparisonKey, JudgedTrajectory, Pattern, Share, Skill
from domain.trajectory import Assessed, Ended, EvidenceRetrieved, QuestionAsked
from skills.strategies import learn_strategies
from skills.writer import Example, SkillWriter, Words, course_of, masked, review, signals
from store.queries import learning
from store.queries import skills as stored
from store.queries.trajectories import events_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store


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
