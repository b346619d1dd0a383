"""Characters with their members and names, each as of a clip."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Integer,
    Select,
    String,
    Text,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session, aliased

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import Character
from store.queries.conditions import Reader, is_any_of, valid_at, view_parameters
from store.tables.schema import CharacterMemberRow, CharacterNameRow, CharacterRow, IdentityRow


@dataclass(frozen=True)
class Name:
    """A name with its source: said, read, caption, model or person."""

    text: str
    source: str
    from_clip: int


@dataclass(frozen=True)
class CharacterAt:
    """A character as of a clip.

    ``id``, ``members``: its row and its identities' rows; ``names``: oldest first; ``began``: the
    numbers of the characters that its identities first were.
    """

    id: int
    character: Character
    members: tuple[int, ...]
    names: tuple[Name, ...]
    from_clip: int
    began: tuple[int, ...] = ()


def characters_at(session: Session, video_id: str, clip: int) -> list[CharacterAt]:
    """Return the characters of a video as of ``clip``, by number."""
    return characters_in_view(session, [Scope(video=video_id, last_clip=clip)])[video_id]


def characters_in_view(
    database: Reader, scopes: Sequence[Scope]
) -> defaultdict[str, list[CharacterAt]]:
    """Return the characters of several videos, each as of its scope, by video and number."""
    rows = database.execute(_IN_VIEW, view_parameters(scopes)).scalar_one() or ()
    found = defaultdict[str, list[CharacterAt]](list)
    for video, *fields in rows:
        found[video].append(_character(*fields))
    return found


def characters_with(session: Session, identity_ids: Iterable[int], clip: int) -> list[CharacterAt]:
    """Return the characters that these identities belong to as of ``clip``, by number."""
    members = select(CharacterMemberRow.character_id).where(
        is_any_of(CharacterMemberRow.identity_id, identity_ids), valid_at(CharacterMemberRow, clip)
    )
    query = _characters(literal(clip)).where(CharacterRow.id.in_(members))
    return [_character(*fields) for _, *fields in session.execute(query)]


def _characters(clip: ColumnElement[int]) -> Select[Any]:
    """Select the characters as of ``clip`` with their members and names, in one statement."""
    # Select the members of a character: row, kind, number, and the number each began as.
    first_member, first = aliased(CharacterMemberRow), aliased(CharacterRow)
    began = (
        select(first.number)
        .join(first_member, first_member.character_id == first.id)
        .where(first_member.identity_id == IdentityRow.id)
        .order_by(first_member.id)
        .limit(1)
        .scalar_subquery()
    )
    fields = func.json_build_array(IdentityRow.id, IdentityRow.kind, IdentityRow.number, began)
    members = (
        select(func.json_agg(aggregate_order_by(fields, IdentityRow.kind, IdentityRow.number)))
        .join(CharacterMemberRow, CharacterMemberRow.identity_id == IdentityRow.id)
        .where(
            CharacterMemberRow.character_id == CharacterRow.id, valid_at(CharacterMemberRow, clip)
        )
        .correlate_except(IdentityRow, CharacterMemberRow)
    )
    return (
        select(
            CharacterRow.video_id,
            CharacterRow.id,
            CharacterRow.number,
            CharacterRow.from_clip,
            members.scalar_subquery(),
            _names(clip).scalar_subquery(),
        )
        .where(valid_at(CharacterRow, clip))
        .order_by(CharacterRow.video_id, CharacterRow.number)
    )


def _names(clip: ColumnElement[int]) -> Select[Any]:
    """Select the names of a character, oldest first: text, source, first clip."""
    row = CharacterNameRow
    fields = func.json_build_array(row.name, row.source, row.from_clip)
    return (
        select(func.json_agg(aggregate_order_by(fields, row.from_clip, row.id)))
        .where(row.character_id == CharacterRow.id, valid_at(row, clip))
        .correlate_except(row)
    )


def _select_in_view() -> Select[Any]:
    """Select the characters of a view as one list of lists; built once, since building is slow."""
    scopes = func.unnest(
        cast(bindparam("videos", type_=Text), ARRAY(Text)),
        cast(bindparam("last_clips", type_=Text), ARRAY(Integer)),
    ).table_valued(column("video", String), column("last_clip", Integer), name="scope")
    view = scopes.render_derived()
    found = _characters(view.c.last_clip).join(view, view.c.video == CharacterRow.video_id)
    return select(func.json_agg(func.json_build_array(*found.subquery().c), type_=JSON))


_IN_VIEW = _select_in_view()


def _character(
    row_id: int,
    number: int,
    from_clip: int,
    members: list[tuple[int, str, int, int]] | None,
    names: list[tuple[str, str, int]] | None,
) -> CharacterAt:
    members, known = members or [], tuple(Name(*fields) for fields in names or ())
    character = Character(
        number=number,
        name=preferred_name(known),
        faces=tuple(n for _, kind, n, _ in members if kind == IdentityKind.FACE),
        voices=tuple(n for _, kind, n, _ in members if kind == IdentityKind.VOICE),
    )
    rows, began = tuple(member[0] for member in members), tuple(member[3] for member in members)
    return CharacterAt(row_id, character, rows, known, from_clip, began)


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
