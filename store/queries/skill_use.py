"""Use of skills: the questions they were given to, and whether the answers were right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from domain.skills import ComparisonKey, Share
from store.queries.learning import select_with_comparison_key
from store.tables.schema import (
    JudgementRow,
    ObservationRow,
    QuestionRow,
    TrajectoryEventRow,
    TrajectoryRow,
)

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


def uses_page(session: Session, name: str, offset: int, limit: int) -> list[Use]:
    """Return the questions that were given a skill, newest first."""
    return _page(session, _given(name), offset, limit)


def count_uses(session: Session, name: str) -> int:
    """Return the number of questions that were given a skill."""
    return session.scalar(select(func.count()).select_from(_given(name).subquery())) or 0


def sources_page(session: Session, name: str, offset: int, limit: int) -> list[Use]:
    """Return the questions that a skill was learned from, in all its versions, newest first."""
    return _page(session, _learned(name), offset, limit)


def count_sources(session: Session, name: str) -> int:
    """Return the number of questions that a skill was learned from."""
    return session.scalar(select(func.count()).select_from(_learned(name).subquery())) or 0


def used_between(session: Session, name: str) -> tuple[datetime, datetime] | None:
    """Return the times of the first and last question given a skill; None without any."""
    at = TrajectoryRow.started_at
    query = select(func.min(at), func.max(at)).where(TrajectoryRow.id.in_(_given(name)))
    first, last = session.execute(query).one()
    return (first, last) if first is not None else None


def tallies(session: Session, name: str, unit: Unit) -> list[SkillTally]:
    """Return the use of a skill by day, week or month (UTC); periods without use are left out."""
    at = func.date_trunc(unit, TrajectoryRow.started_at, "UTC").label("start")
    right = JudgementRow.right
    counts = (func.count(), func.count(right), func.count().filter(right.is_(True)))
    query = (
        select(at, *counts)
        .select_from(TrajectoryRow)
        .outerjoin(JudgementRow, JudgementRow.trajectory_id == TrajectoryRow.id)
        .where(TrajectoryRow.id.in_(_given(name)))
        .group_by(at)
        .order_by(at)
    )
    return [SkillTally(*row) for row in session.execute(query)]


def right_shares(session: Session, name: str | None = None) -> Mapping[ComparisonKey, Share]:
    """Return the judged answers by comparison key; ``name``: only of questions given that skill."""
    row = JudgementRow
    counts = (func.count(), func.count().filter(row.right.is_(True)))
    query = select_with_comparison_key(*counts).where(row.right.is_not(None))
    if name is not None:
        query = query.where(row.trajectory_id.in_(_given(name)))
    grouped = query.group_by(*query.selected_columns[2:])
    return {
        ComparisonKey(*key): Share(judged, right)
        for judged, right, *key in session.execute(grouped)
    }


def _given(name: str) -> Select[str]:
    row = TrajectoryEventRow
    has = row.payload["skills"].contains([{"name": name}])
    return select(row.trajectory_id).where(row.kind == "skills", has).distinct()


def _learned(name: str) -> Select[str]:
    row = ObservationRow
    return select(row.trajectory_id).where(row.skill == name).distinct()


def _page(session: Session, which: Select[Any], offset: int, limit: int) -> list[Use]:
    row = TrajectoryRow
    query = (
        select(row.id, QuestionRow.text, row.started_at, JudgementRow.right)
        .join(QuestionRow, QuestionRow.id == row.question_id)
        .outerjoin(JudgementRow, JudgementRow.trajectory_id == row.id)
        .where(row.id.in_(which))
        .order_by(row.started_at.desc(), row.id)
    )
    return [Use(*fields) for fields in session.execute(query.offset(offset).limit(limit))]
