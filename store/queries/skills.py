"""The skill library: every version of every skill, and which were taken out of use."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from domain.skills import Skill
from store.schema import CharacterNameRow, SkillRow, TrajectoryEventRow


class KeptVersion(NamedTuple):
    """The latest version of a skill."""

    skill: Skill
    banned: bool


def latest(session: Session) -> list[KeptVersion]:
    """Each skill in its latest version, by name."""
    rows = session.scalars(
        select(SkillRow)
        .ext(distinct_on(SkillRow.name))
        .order_by(SkillRow.name, SkillRow.version.desc())
    )
    return [KeptVersion(Skill.model_validate(row.payload), row.banned) for row in rows]


def versions(session: Session, name: str) -> list[Skill]:
    """All versions of a skill, oldest first."""
    rows = session.scalars(
        select(SkillRow.payload).where(SkillRow.name == name).order_by(SkillRow.version)
    )
    return [Skill.model_validate(payload) for payload in rows]


def add(session: Session, skill: Skill) -> None:
    """Keep a version; a skill that was out of use stays so."""
    banned = session.scalar(
        select(func.bool_or(SkillRow.banned)).where(SkillRow.name == skill.name)
    )
    payload = skill.model_dump(mode="json")
    row = SkillRow(name=skill.name, version=skill.version, payload=payload, banned=bool(banned))
    session.add(row)
    session.flush()


def set_banned(session: Session, name: str, *, banned: bool) -> None:
    """Take all versions of a skill out of use, or back into it."""
    session.execute(update(SkillRow).where(SkillRow.name == name).values(banned=banned))


def uses(session: Session) -> dict[str, int]:
    """How many questions were given each skill."""
    given = func.jsonb_array_elements(TrajectoryEventRow.payload["skills"]).table_valued(
        "value", name="given"
    )
    name = given.c.value.op("->>")("name")
    rows = session.execute(
        select(name, func.count(func.distinct(TrajectoryEventRow.trajectory_id)))
        .select_from(TrajectoryEventRow)
        .join(given, onclause=TrajectoryEventRow.kind == "skills")
        .where(TrajectoryEventRow.kind == "skills")
        .group_by(name)
    )
    return {str(found): int(count) for found, count in rows}


def given_to(
    session: Session, name: str, version: int | None = None, most: int | None = None
) -> list[str]:
    """The latest trajectories whose question was given a skill, or one version, newest first."""
    wanted = {"name": name} | ({} if version is None else {"version": version})
    has = TrajectoryEventRow.payload["skills"].contains([wanted])
    rows = session.scalars(
        select(TrajectoryEventRow.trajectory_id)
        .where(TrajectoryEventRow.kind == "skills", has)
        .order_by(TrajectoryEventRow.at.desc(), TrajectoryEventRow.trajectory_id)
        .limit(most)
    )
    return list(rows)


def known_names(session: Session) -> list[str]:
    """Names of people: what advice for all videos does not speak of."""
    return sorted(session.scalars(select(CharacterNameRow.name).distinct()))
