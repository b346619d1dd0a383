"""Judged answers, the observations in them, and the skills learned from those."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import Integer, Select, cast, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.skills import (
    ComparedAnswer,
    ComparisonKey,
    JudgedTrajectory,
    Pattern,
    Share,
    Signal,
    Skill,
)
from store.queries import skills as stored
from store.tables.schema import (
    EvalResultRow,
    EvalRunRow,
    JudgementRow,
    ObservationRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)


def put_judgement(session: Session, judged: JudgedTrajectory) -> None:
    """Record whether an answer is right; a changed judgement is learned from again.

    Raises:
        NotFound: There is no such trajectory, or it was deleted meanwhile.
    """
    locked = {"read": True, "key_share": True}
    if session.get(TrajectoryRow, judged.trajectory, with_for_update=locked) is None:
        raise NotFound(
            f"there is no trajectory {judged.trajectory!r}: 'homer trajectory' lists them"
        )
    values = {"question_type": judged.question_type, "right": judged.right}
    row = insert(JudgementRow).values(trajectory_id=judged.trajectory, **values)
    changed = JudgementRow.right.is_distinct_from(row.excluded.right)
    session.execute(
        row.on_conflict_do_update(
            index_elements=["trajectory_id"], set_={**values, "learned": False}, where=changed
        )
    )


def judgement_of(session: Session, trajectory: str) -> JudgedTrajectory | None:
    """Return the judgement of an answer, or None."""
    row = session.get(JudgementRow, trajectory)
    return _as_judged(row) if row else None


def unlearned_judgements(session: Session, most: int) -> list[JudgedTrajectory]:
    """Return the judged answers that were not learned from yet, oldest first."""
    rows = session.scalars(
        select(JudgementRow)
        .where(~JudgementRow.learned)
        .order_by(JudgementRow.judged_at, JudgementRow.trajectory_id)
        .limit(most)
        .with_for_update(skip_locked=True)
    )
    return [_as_judged(row) for row in rows]


def count_unlearned(session: Session) -> int:
    """Return the number of judged answers that were not learned from yet."""
    row = JudgementRow
    return session.scalar(select(func.count()).where(~row.learned, row.right.is_not(None))) or 0


def comparable_answers(session: Session) -> list[ComparedAnswer]:
    rows = session.execute(
        select_with_comparison_key(JudgementRow.trajectory_id, JudgementRow.right)
    )
    return [ComparedAnswer(name, ComparisonKey._make(rest), right) for name, right, *rest in rows]


def select_with_comparison_key(*columns: Any) -> Select[Any]:
    """Select these columns of judged answers, followed by those of ``ComparisonKey``."""
    row, trajectory, result, run = JudgementRow, TrajectoryRow, EvalResultRow, EvalRunRow
    names = (func.coalesce(run.dataset, ""), func.coalesce(run.name, ""))
    return (
        select(*columns, row.question_type, trajectory.profile, *names)
        .select_from(row)
        .join(trajectory, trajectory.id == row.trajectory_id)
        .outerjoin(result, result.trajectory_id == trajectory.id)
        .outerjoin(run, run.name == result.run)
    )


def _as_judged(row: JudgementRow) -> JudgedTrajectory:
    return JudgedTrajectory(
        trajectory=row.trajectory_id, question_type=row.question_type, right=row.right
    )


def mark_learned(session: Session, trajectory: str) -> None:
    """Mark an answer as learned from, and delete its observations that no skill uses."""
    session.execute(
        update(JudgementRow).where(JudgementRow.trajectory_id == trajectory).values(learned=True)
    )
    observation = ObservationRow
    session.query(observation).filter(
        observation.trajectory_id == trajectory, observation.skill.is_(None)
    ).delete()


def add_observations(session: Session, judged: JudgedTrajectory, signals: Iterable[Signal]) -> None:
    """Record the signals of an answer; an observation that a skill uses is left unchanged."""
    values = [
        {
            "trajectory_id": judged.trajectory,
            "signal": signal,
            "question_type": judged.question_type,
        }
        for signal in signals
    ]
    if values:
        session.execute(insert(ObservationRow).values(values).on_conflict_do_nothing())


def recurring_patterns(session: Session, least: int, size: int) -> list[tuple[Pattern, list[str]]]:
    """Return patterns that recur within one batch and that no skill was made of.

    Args:
        least: The number of observations that make a pattern.
        size: Answers per batch, filled in the order in which they are learned from, however few
            at a time.

    Returns:
        Patterns and the trajectories of their observations; one that recurs in several batches
        appears once for each.
    """
    observation, judgement = ObservationRow, JudgementRow
    place = func.row_number().over(order_by=(judgement.judged_at, judgement.trajectory_id))
    batch = ((place - 1) // size).label("batch")
    placed = select(judgement.trajectory_id, batch).where(judgement.learned).subquery()
    groups = session.execute(
        select(
            observation.signal, observation.question_type, func.array_agg(observation.trajectory_id)
        )
        .join(placed, placed.c.trajectory_id == observation.trajectory_id)
        .where(observation.skill.is_(None))
        .group_by(observation.signal, observation.question_type, placed.c.batch)
        .having(func.count() >= least)
        .order_by(observation.signal, observation.question_type, placed.c.batch)
    )
    return [
        (Pattern(signal=Signal(signal), question_type=kind), sorted(trajectories))
        for signal, kind, trajectories in groups
    ]


def link_observations(
    session: Session, pattern: Pattern, trajectories: Sequence[str], skill: Skill
) -> None:
    observation = ObservationRow
    session.execute(
        update(observation)
        .where(
            observation.signal == pattern.signal,
            observation.question_type == pattern.question_type,
            observation.trajectory_id.in_(trajectories),
        )
        .values(skill=skill.name, version=skill.version)
    )


def source_trajectories(session: Session, skill: str) -> list[str]:
    """Return the trajectories that a skill was learned from, in all its versions."""
    observation = ObservationRow
    query = select(observation.trajectory_id).where(observation.skill == skill).distinct()
    return sorted(session.scalars(query))


def source_questions(session: Session, skills: Sequence[str], most: int) -> dict[str, list[str]]:
    """Return the questions that skills were learned from, by skill: the latest, each once.

    Args:
        most: questions of a skill, at most.
    """
    observation, run, question = ObservationRow, TrajectoryRow, QuestionRow
    query = (
        select(observation.skill, question.text)
        .join(run, run.id == observation.trajectory_id)
        .join(question, question.id == run.question_id)
        .where(observation.skill.in_(skills))
        .group_by(observation.skill, question.text)
        .order_by(func.max(run.started_at).desc(), question.text)
    )
    found: dict[str, list[str]] = {}
    for skill, text in session.execute(query):
        found.setdefault(str(skill), []).append(text)
    return {skill: texts[:most] for skill, texts in found.items()}


def latest_skill_version(session: Session, name: str) -> Skill | None:
    skill_versions = stored.skill_versions(session, name)
    return skill_versions[-1] if skill_versions else None


def answers_of(session: Session, trajectories: Sequence[str]) -> list[str]:
    """Return the texts of answers, which no skill may reveal."""
    query = select(TrajectoryRow.answer).where(TrajectoryRow.id.in_(trajectories))
    texts = {str(answer["text"]) for answer in session.scalars(query) if answer}
    return sorted(texts)


Unit = Literal["day", "week", "month"]


class Use(NamedTuple):
    """A question with its time; ``right`` is None if its answer was not judged."""

    trajectory: str
    question: str
    at: datetime
    right: bool | None


class SkillTally(NamedTuple):
    """Questions of one day, week or month that were given a skill, and how many were right."""

    start: datetime
    given: int
    judged: int
    right: int


def uses_page(session: Session, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return a page of the questions that were given a skill, newest first, and their number."""
    return _page(session, _trajectories_with_skill(name), offset, limit)


def sources_page(session: Session, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return the same of those that a skill was learned from, in all its versions."""
    row = ObservationRow
    learned_from = select(row.trajectory_id).where(row.skill == name).distinct()
    return _page(session, learned_from, offset, limit)


def used_between(session: Session, name: str) -> tuple[datetime, datetime] | None:
    """Return the times of the first and last question given a skill; None without any."""
    started_at = TrajectoryRow.started_at
    query = select(func.min(started_at), func.max(started_at)).where(
        TrajectoryRow.id.in_(_trajectories_with_skill(name))
    )
    first, last = session.execute(query).one()
    return (first, last) if first is not None else None


def tallies(session: Session, name: str, unit: Unit) -> list[SkillTally]:
    """Return the use of a skill by day, week or month (UTC); periods without use are left out."""
    period = func.date_trunc(unit, TrajectoryRow.started_at, "UTC").label("start")
    right = JudgementRow.right
    query = (
        select(period, func.count(), func.count(right), func.count().filter(right.is_(True)))
        .select_from(TrajectoryRow)
        .outerjoin(JudgementRow, JudgementRow.trajectory_id == TrajectoryRow.id)
        .where(TrajectoryRow.id.in_(_trajectories_with_skill(name)))
        .group_by(period)
        .order_by(period)
    )
    return [SkillTally._make(row) for row in session.execute(query)]


def right_shares(session: Session, name: str | None = None) -> Mapping[ComparisonKey, Share]:
    """Return the judged answers by comparison key; ``name``: only of questions given that skill."""
    row = JudgementRow
    query = select_with_comparison_key(
        func.count(), func.count().filter(row.right.is_(True))
    ).where(row.right.is_not(None))
    if name is not None:
        query = query.where(row.trajectory_id.in_(_trajectories_with_skill(name)))
    grouped = query.group_by(*query.selected_columns[2:])
    return {
        ComparisonKey._make(key): Share(judged, right)
        for judged, right, *key in session.execute(grouped)
    }


def _trajectories_with_skill(name: str) -> Select[str]:
    row = TrajectoryEventRow
    has = row.payload["skills"].contains([{"name": name}])
    return select(row.trajectory_id).where(row.kind == "skills", has).distinct()


def _page(
    session: Session, trajectories: Select[str], offset: int, limit: int
) -> tuple[list[Use], int]:
    row = TrajectoryRow
    query = (
        select(row.id, QuestionRow.text, row.started_at, JudgementRow.right)
        .join(QuestionRow, QuestionRow.id == row.question_id)
        .outerjoin(JudgementRow, JudgementRow.trajectory_id == row.id)
        .where(row.id.in_(trajectories))
        .order_by(row.started_at.desc(), row.id)
    )
    page = [Use._make(fields) for fields in session.execute(query.offset(offset).limit(limit))]
    return page, session.scalar(select(func.count()).select_from(trajectories.subquery())) or 0


# Judged answers by the question asked and the strategy that answered it.


class JudgedRun(NamedTuple):
    """A judged answer. Equal ``asked``: the same question, over the same videos, by one profile.

    ``rounds`` are those that the answer took.
    """

    trajectory: str
    asked: str
    text: str
    question_type: str
    strategy: str
    right: bool
    rounds: int


def judged_runs(session: Session) -> list[JudgedRun]:
    """Return the judged answers, in the order of judging, without forks: people changed those."""
    judgement, run, question = JudgementRow, TrajectoryRow, QuestionRow
    event, video = TrajectoryEventRow, TrajectoryVideoRow
    of_run = event.trajectory_id == run.id
    rounds = select(func.max(cast(event.payload["rounds"].as_string(), Integer))).where(
        of_run, event.kind == "end"
    )
    videos = select(func.array_agg(video.video_id)).where(video.trajectory_id == run.id)
    rows = session.execute(
        select(
            run.id,
            run.machine,
            run.profile,
            judgement.question_type,
            judgement.right,
            question.text,
            question.options,
            question.as_of_ms,
            videos.scalar_subquery(),
            rounds.scalar_subquery(),
        )
        .select_from(judgement)
        .join(run, run.id == judgement.trajectory_id)
        .join(question, question.id == run.question_id)
        .where(judgement.right.is_not(None), run.state == "done")
        .where(~exists().where(of_run, event.kind == "fork"))
        .order_by(judgement.judged_at, run.id)
    )
    return [
        JudgedRun(
            trajectory=name,
            asked=json.dumps([profile, text, options, as_of_ms, sorted(searched or ())]),
            text=text,
            question_type=kind,
            strategy=machine,
            right=right,
            rounds=count or 0,
        )
        for name, machine, profile, kind, right, text, options, as_of_ms, searched, count in rows
    ]


# Judged trajectories to train on, with the right answers that data sets give.


def judged_records(
    session: Session, strategy: str
) -> list[tuple[str, bool, Mapping[str, Any] | None]]:
    """Return the judged trajectories of a strategy, oldest first, without forks.

    With each whether it is right, and the data set's own record of its question, if it has one. An
    answer counts as judged where somebody or an evaluation said whether it is right.
    """
    run, judgement, result = TrajectoryRow, JudgementRow, EvalResultRow
    forked = exists().where(
        TrajectoryEventRow.trajectory_id == run.id, TrajectoryEventRow.kind == "fork"
    )
    rows = session.execute(
        select(run.id, judgement.right, result.verdict, result.item)
        .outerjoin(judgement, judgement.trajectory_id == run.id)
        .outerjoin(result, result.trajectory_id == run.id)
        .where(run.machine == strategy, run.state == "done", ~forked)
        .order_by(run.started_at, run.id)
    )
    records: dict[str, tuple[str, bool, Mapping[str, Any] | None]] = {}
    for name, judged, verdict, item in rows:
        right = judged if judged is not None else (verdict or {}).get("right")
        if right is not None:
            records.setdefault(name, (name, bool(right), item))
    return list(records.values())
