"""The skill library: every version of every skill, and which are banned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from domain.skills import Skill
from domain.words import make_storable
from store.tables.schema import CharacterNameRow, SkillRow, TrajectoryEventRow


class LatestVersion(NamedTuple):
    """The latest version of a skill."""

    skill: Skill
    banned: bool


def latest_versions(
    session: Session, offset: int = 0, limit: int | None = None, words: str = ""
) -> list[LatestVersion]:
    """Return each skill's latest version by name; ``words``: in its name or description."""
    skills = _latest().subquery()
    query = (
        select(skills.c.payload, skills.c.banned)
        .where(*_about(skills.c, words))
        .order_by(skills.c.name)
    )
    rows = session.execute(query.offset(offset).limit(limit))
    return [LatestVersion(Skill.model_validate(payload), banned) for payload, banned in rows]


def count_skills(session: Session, words: str = "") -> int:
    """Return the number of skills; ``words``: only with them in name or description."""
    skills = _latest().subquery()
    query = select(func.count()).select_from(skills).where(*_about(skills.c, words))
    return session.execute(query).scalar_one()


def find_skill(session: Session, name: str) -> LatestVersion | None:
    row = session.scalars(_latest().where(SkillRow.name == make_storable(name))).first()
    return LatestVersion(Skill.model_validate(row.payload), row.banned) if row else None


def _latest() -> Select[SkillRow]:
    newest = select(SkillRow).ext(distinct_on(SkillRow.name))
    return newest.order_by(SkillRow.name, SkillRow.version.desc())


def _about(columns: Any, words: str) -> list[ColumnElement[bool]]:
    search_words = make_storable(words).strip()
    description = columns.payload["description"].as_string()
    matches = [
        column.icontains(search_words, autoescape=True) for column in (columns.name, description)
    ]
    return [or_(*matches)] if search_words else []


def skill_versions(session: Session, name: str) -> list[Skill]:
    """Return all versions of a skill, oldest first."""
    rows = session.scalars(
        select(SkillRow.payload).where(SkillRow.name == name).order_by(SkillRow.version)
    )
    return [Skill.model_validate(payload) for payload in rows]


def add_version(session: Session, skill: Skill) -> None:
    """Store a version; a banned skill stays banned."""
    banned = session.scalar(
        select(func.bool_or(SkillRow.banned)).where(SkillRow.name == skill.name)
    )
    payload = skill.model_dump(mode="json")
    row = SkillRow(name=skill.name, version=skill.version, payload=payload, banned=bool(banned))
    session.add(row)
    session.flush()


def set_banned(session: Session, name: str, *, banned: bool) -> None:
    """Ban all versions of a skill, or lift the ban."""
    session.execute(update(SkillRow).where(SkillRow.name == name).values(banned=banned))


def count_uses_by_skill(session: Session, names: Sequence[str] | None = None) -> dict[str, int]:
    """Return the number of questions given each skill, or each of ``names``."""
    entry = func.jsonb_array_elements(TrajectoryEventRow.payload["skills"]).table_valued(
        "value", name="given"
    )
    name = entry.c.value.op("->>")("name")
    rows = session.execute(
        select(name, func.count(func.distinct(TrajectoryEventRow.trajectory_id)))
        .select_from(TrajectoryEventRow)
        .join(entry, onclause=TrajectoryEventRow.kind == "skills")
        .where(TrajectoryEventRow.kind == "skills")
        .where(true() if names is None else name.in_(names))
        .group_by(name)
    )
    return {str(skill): int(count) for skill, count in rows}


def trajectories_given(session: Session, name: str, limit: int) -> list[str]:
    """Return the latest trajectories given a skill, newest first."""
    has = TrajectoryEventRow.payload["skills"].contains([{"name": name}])
    rows = session.scalars(
        select(TrajectoryEventRow.trajectory_id)
        .where(TrajectoryEventRow.kind == "skills", has)
        .order_by(TrajectoryEventRow.at.desc(), TrajectoryEventRow.trajectory_id)
        .limit(limit)
    )
    return list(rows)


def trajectories_by_skill(session: Session) -> dict[str, list[tuple[str, int]]]:
    """Return the trajectories given each skill and its version, by its name; in one query."""
    row = TrajectoryEventRow
    skill_entry = func.jsonb_array_elements(row.payload["skills"]).table_valued(
        "value", name="given"
    )
    name, version = (skill_entry.c.value.op("->>")(field) for field in ("name", "version"))
    rows = session.execute(
        select(row.trajectory_id, name, version)
        .select_from(row)
        .join(skill_entry, onclause=row.kind == "skills")
        .where(row.kind == "skills")
        .order_by(row.trajectory_id)
    )
    trajectories: dict[str, list[tuple[str, int]]] = {}
    for trajectory, skill, skill_version in rows:
        trajectories.setdefault(str(skill), []).append((trajectory, int(skill_version)))
    return trajectories


def names_of_people(session: Session) -> list[str]:
    """Return the names of people, which skills for all videos must not mention."""
    return sorted(session.scalars(select(CharacterNameRow.name).distinct()))
