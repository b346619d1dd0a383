"""Learning from judged answers: what recurs becomes a skill, and what hurts is banned (section 3).

Everything that a batch changes is in the store when it returns: a learner that is killed goes on
with the answers that it had not learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain import faults
from domain.base import Frozen
from domain.errors import InputError, ModelError
from domain.skills import JudgedTrajectory, Pattern, Skill
from domain.trajectory import Event, EvidenceRetrieved, QuestionAsked
from skills.bans import hurts, shares
from skills.review import review
from skills.signals import course_of, signals
from skills.writer import Example, SkillWriter, Words
from store.queries import learning
from store.queries import skills as stored
from store.queries.trajectories import events_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store

BATCH = 64
PROMOTED_AT = 8
"""Observations of a pattern in one batch that make a skill, and again as many that refine it."""


class LearningResult(Frozen):
    """What a batch changed. ``refused`` are patterns of which no skill could be made, and why."""

    answers: int
    observations: int
    written: tuple[Skill, ...] = ()
    refused: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()


def judge(store: Store, judged: JudgedTrajectory) -> None:
    """Put on record whether an answer is right; a later word replaces an earlier one.

    Raises:
        NotFound: there is no such trajectory.
    """
    with store.begin() as session:
        learning.put_judgement(session, judged)


def judgement(store: Store, trajectory: str) -> bool | None:
    """Whether an answer was said to be right; None where nobody judged it, or took it back."""
    with store.begin() as session:
        found = learning.judgement_of(session, trajectory)
    return found.right if found else None


def waiting(store: Store) -> int:
    """How many judged answers were not learned from yet."""
    with store.begin() as session:
        return learning.count_unlearned(session)


def learn(store: Store, writer: SkillWriter, words: Words) -> LearningResult:
    """Learn from at most one batch of answers that were judged since the last time."""
    with store.begin() as session:
        batch = learning.unlearned(session, BATCH)
        count = sum(_observe(session, one) for one in batch)
    faults.fault_point(faults.FaultPoint.OBSERVED)
    written, refused = _promote(store, writer, words)
    with store.begin() as session:
        banned = _ban(session)
    faults.fault_point(faults.FaultPoint.BANNED)
    return LearningResult(
        answers=len(batch),
        observations=count,
        written=tuple(written),
        refused=tuple(refused),
        banned=tuple(banned),
    )


def _observe(session: Session, judged: JudgedTrajectory) -> int:
    """Note the signals of an answer, once."""
    learning.mark_learned(session, judged.trajectory)
    events = events_of(session, judged.trajectory)
    course = course_of(events)
    if judged.right is None or course is None:
        return 0
    found = signals(course, _attempts(events), right=judged.right)
    learning.add_observations(session, judged, found)
    return len(found)


def _attempts(events: Sequence[Event]) -> int:
    asked = next(event for event in events if isinstance(event, QuestionAsked))
    return asked.setup.settings.attempts


def _promote(store: Store, writer: SkillWriter, words: Words) -> tuple[list[Skill], list[str]]:
    """Skills for the patterns that recur; what cannot be written is tried again next time."""
    with store.begin() as session:
        due = learning.recurring(session, PROMOTED_AT, BATCH)
    made: list[Skill] = []
    refused: list[str] = []
    for pattern, trajectories in due:
        try:
            made.append(_made(store, writer, words, pattern, trajectories))
        except (InputError, ModelError) as error:
            refused.append(f"{pattern.name}: {error}")
    return made, refused


def _made(
    store: Store,
    writer: SkillWriter,
    words: Words,
    pattern: Pattern,
    trajectories: Sequence[str],
) -> Skill:
    """The skill for a pattern, stored with what it was made of.

    Raises:
        InputError: it does not pass the review.
        ModelError: it could not be written.
    """
    with store.begin() as session:
        known = learning.latest_of(session, pattern.name)
        examples = [_example(session, name) for name in trajectories]
        names, answers = stored.known_names(session), learning.answers_of(session, trajectories)
    draft = writer.write(pattern, examples, known, words)
    skill = draft.model_copy(update={"version": known.version + 1 if known else 1})
    if wrong := review(skill, names, answers):
        raise InputError("; ".join(wrong))
    with store.begin() as session:
        # The writer may have taken minutes, and somebody may have put one in meanwhile.
        if learning.latest_of(session, pattern.name) != known:
            raise InputError("it was changed while it was written: the next run writes it anew")
        stored.add(session, skill)
        learning.link(session, pattern, trajectories, skill)
    faults.fault_point(faults.FaultPoint.SKILL_WRITTEN)
    return skill


def _example(session: Session, trajectory: str) -> Example:
    events = events_of(session, trajectory)
    asked = next(event for event in events if isinstance(event, QuestionAsked))
    course = course_of(events)
    assert course is not None  # noqa: S101 - it was observed, so it ended
    searches = (e for e in events if isinstance(e, EvidenceRetrieved) and e.round > 0)
    modes = tuple(event.mode for event in searches)
    return Example(trajectory, asked.question.text, course, modes)


def _ban(session: Session) -> list[str]:
    """Ban the skills in use that hurt; what they are measured by is worked out once for all."""
    answers = {one.trajectory: one for one in learning.comparable(session)}
    every, given = shares(answers.values()), stored.given(session)
    banned = []
    for kept in stored.latest(session):
        uses = [use for use in given.get(kept.skill.name, ()) if use.trajectory in answers]
        own = shares(answers[name] for name in {use.trajectory for use in uses})
        now = [answers[u.trajectory] for u in uses if u.version == kept.skill.version]
        if not kept.banned and hurts(now, own, every):
            stored.set_banned(session, kept.skill.name, banned=True)
            banned.append(kept.skill.name)
    return banned
