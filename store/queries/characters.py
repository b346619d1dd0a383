"""Characters with their members and names, each as of a clip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, insert, select, update
from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.people import Character
from store.queries.conditions import is_any_of, valid_at
from store.tables.schema import CharacterMemberRow, CharacterNameRow, CharacterRow, IdentityRow


@dataclass(frozen=True)
class Name:
    """A name with its source: said, read, caption, model or person."""

    text: str
    source: str
    from_clip: int


@dataclass(frozen=True)
class CharacterAt:
    """A character as of a clip: its row, its members' rows, and its names, oldest first."""

    id: int
    character: Character
    members: tuple[int, ...]
    names: tuple[Name, ...]
    from_clip: int


def characters_at(session: Session, video_id: str, clip: int) -> list[CharacterAt]:
    """Return the characters of a video as of ``clip``, by number."""
    query = select(CharacterRow).where(CharacterRow.video_id == video_id)
    return _read(session, query, clip)


def characters_with(session: Session, identity_ids: Iterable[int], clip: int) -> list[CharacterAt]:
    """Return the characters that these identities belong to as of ``clip``, by number."""
    members = select(CharacterMemberRow.character_id).where(
        is_any_of(CharacterMemberRow.identity_id, identity_ids), valid_at(CharacterMemberRow, clip)
    )
    return _read(session, select(CharacterRow).where(CharacterRow.id.in_(members)), clip)


def _read(session: Session, query: Select[Any], clip: int) -> list[CharacterAt]:
    rows = list(
        session.scalars(query.where(valid_at(CharacterRow, clip)).order_by(CharacterRow.number))
    )
    if not rows:
        return []
    ids = [row.id for row in rows]
    members, names = _members(session, ids, clip), _names(session, ids, clip)
    return [_character(row, members.get(row.id, []), names.get(row.id, [])) for row in rows]


def _character(
    row: CharacterRow, members: list[tuple[int, str, int]], names: list[Name]
) -> CharacterAt:
    numbers = {kind: tuple(n for _, k, n in members if k == str(kind)) for kind in IdentityKind}
    character = Character(
        number=row.number,
        name=preferred_name(names),
        faces=numbers[IdentityKind.FACE],
        voices=numbers[IdentityKind.VOICE],
    )
    rows = tuple(identity_id for identity_id, _, _ in members)
    return CharacterAt(row.id, character, rows, tuple(names), row.from_clip)


NAME_SOURCES_BY_TRUST = ("model", "said", "read", "caption", "person")
"""Sources of names, the least trusted first."""


def preferred_name(names: Sequence[Name]) -> str | None:
    """Return the most trusted name, the oldest among equals."""
    best = max(
        names,
        key=lambda name: (NAME_SOURCES_BY_TRUST.index(name.source), -name.from_clip),
        default=None,
    )
    return best.text if best else None


def _members(
    session: Session, character_ids: list[int], clip: int
) -> dict[int, list[tuple[int, str, int]]]:
    query = (
        select(
            CharacterMemberRow.character_id, IdentityRow.id, IdentityRow.kind, IdentityRow.number
        )
        .join(IdentityRow, IdentityRow.id == CharacterMemberRow.identity_id)
        .where(
            is_any_of(CharacterMemberRow.character_id, character_ids),
            valid_at(CharacterMemberRow, clip),
        )
        .order_by(IdentityRow.kind, IdentityRow.number)
    )
    members: dict[int, list[tuple[int, str, int]]] = {}
    for character_id, identity_id, kind, number in session.execute(query):
        members.setdefault(character_id, []).append((identity_id, kind, number))
    return members


def _names(session: Session, character_ids: list[int], clip: int) -> dict[int, list[Name]]:
    query = (
        select(CharacterNameRow)
        .where(
            is_any_of(CharacterNameRow.character_id, character_ids),
            valid_at(CharacterNameRow, clip),
        )
        .order_by(CharacterNameRow.from_clip, CharacterNameRow.id)
    )
    names: dict[int, list[Name]] = {}
    for row in session.scalars(query):
        names.setdefault(row.character_id, []).append(Name(row.name, row.source, row.from_clip))
    return names


def open_characters(
    session: Session, video_id: str, identity_ids: Sequence[int], clip: int
) -> list[int]:
    """Create one character for each identity, with the next free numbers; return row ids."""
    if not identity_ids:
        return []
    query = select(func.max(CharacterRow.number)).where(CharacterRow.video_id == video_id)
    last = session.scalar(query)
    start = 0 if last is None else last + 1
    rows = [
        {"video_id": video_id, "number": start + n, "from_clip": clip, "to_clip": None}
        for n in range(len(identity_ids))
    ]
    returning = insert(CharacterRow).returning(CharacterRow.id, sort_by_parameter_order=True)
    ids = list(session.scalars(returning, rows))
    for character_id, identity_id in zip(ids, identity_ids, strict=True):
        add_member(session, character_id, identity_id, clip)
    return ids


def add_member(session: Session, character_id: int, identity_id: int, clip: int) -> None:
    """Add an identity to a character from ``clip`` on."""
    row = {"character_id": character_id, "identity_id": identity_id, "from_clip": clip}
    session.execute(insert(CharacterMemberRow), [row | {"to_clip": None}])


def end_member(session: Session, character_id: int, identity_id: int, clip: int) -> None:
    """End an identity's membership in a character after ``clip``."""
    where = (
        CharacterMemberRow.character_id == character_id,
        CharacterMemberRow.identity_id == identity_id,
        CharacterMemberRow.to_clip.is_(None),
    )
    session.execute(update(CharacterMemberRow).where(*where).values(to_clip=clip))


def end_character(session: Session, character_id: int, clip: int) -> None:
    """End a character after ``clip``; its number is not reused."""
    session.execute(
        update(CharacterRow).where(CharacterRow.id == character_id).values(to_clip=clip)
    )


def add_name(
    session: Session, character_id: int, name: str, source: str, clip: int, identity_id: int
) -> None:
    """Add a name of a character from ``clip`` on, as learned from ``identity_id``."""
    row = {"character_id": character_id, "name": name, "source": source, "from_clip": clip}
    row |= {"identity_id": identity_id}
    session.execute(insert(CharacterNameRow), [{**row, "to_clip": None}])


def end_name(session: Session, character_id: int, name: str, clip: int) -> None:
    """End a name of a character after ``clip``."""
    where = (
        CharacterNameRow.character_id == character_id,
        CharacterNameRow.name == name,
        CharacterNameRow.to_clip.is_(None),
    )
    session.execute(update(CharacterNameRow).where(*where).values(to_clip=clip))
