"""Who is in which character, and how they are called, each as of a clip.

An identity is in a character from a clip on. Rows say both what was learned and what holds with
users' corrections, which are applied when they are made: ``character_members.learned`` and
``in_force``. Where users corrected nothing, one row says both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from psycopg.sql import SQL
from sqlalchemy import and_, delete, func, insert, select, text, update
from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import (
    ACROSS_VIDEOS,
    Character,
    CorrectedCharacter,
    Correction,
    CorrectionKind,
    Identity,
    IdentityStatement,
    KnownName,
)
from domain.time import TimeSpan
from store.queries.conditions import VIEW, Reader, is_any_of, reading_driver, view_parameters
from store.tables.schema import (
    CharacterMemberRow,
    CharacterNameRow,
    CorrectionRow,
    IdentityRow,
    IdentityStatementRow,
    SightingRow,
    UtteranceRow,
)

USER_SOURCE = "person"
"""Source of the names that users give."""

NAME_SOURCES_BY_TRUST = ("model", "said", "read", "caption", USER_SOURCE)
"""Sources of names, the least trusted first."""


@dataclass(frozen=True)
class CharacterAt:
    """A character as of a clip.

    ``members``: its identities' rows; ``tags`` and ``began``: of each its tag, and the number of
    the character that it first was; ``names``: users' first, then the oldest first.
    """

    character: Character
    members: tuple[int, ...]
    names: tuple[KnownName, ...]
    from_clip: int
    tags: tuple[str, ...]
    began: tuple[int, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """Its number, and those of the characters that were joined to it."""
        return frozenset((self.character.number, *self.began))


class Membership(NamedTuple):
    """An identity (its row) that is in the character of a number between two clips."""

    identity: int
    number: int
    from_clip: int
    to_clip: int | None


class GivenNames(NamedTuple):
    """The names that users gave to a character, the preferred one first.

    ``act``: of the corrections of several videos that gave them, which not everybody may see.
    """

    names: tuple[str, ...]
    act: str | None


_PEOPLE = """
    WITH {view}, member AS MATERIALIZED (
        SELECT DISTINCT ON (i.id)
            i.video_id, m.number, i.id, i.kind, i.number AS tag, i.character, i.first_clip
        FROM view JOIN identities AS i ON i.video_id = view.video
        JOIN character_members AS m ON m.identity_id = i.id
        WHERE {rows} AND i.first_clip <= {met} AND (
            (m.from_clip <= view.last_clip AND (m.to_clip IS NULL OR m.to_clip > view.last_clip))
            OR (i.first_clip > view.last_clip AND m.from_clip = i.first_clip))
        ORDER BY i.id, m.to_clip),
    chosen AS MATERIALIZED (SELECT * FROM member {which})
    SELECT
        (SELECT json_agg(json_build_array(video_id, number, id, kind, tag, character, first_clip)
                         ORDER BY video_id, number, kind, tag) FROM chosen),
        (SELECT json_agg(json_build_array(n.video_id, n.identity_id, n.number, n.name, n.source,
                                          n.from_clip, n.ignored) ORDER BY n.from_clip, n.id)
         FROM view JOIN character_names AS n ON n.video_id = view.video
         WHERE {names} (n.from_clip <= view.last_clip
                        OR (n.source = 'caption' AND n.from_clip <= {met})))
"""
_OF_IDENTITIES = """
    WHERE (video_id, number) IN (SELECT video_id, number FROM member WHERE id = ANY(%(of)s))"""
_NAMES_OF_IDENTITIES = """
    (n.identity_id IS NULL OR n.identity_id IN (SELECT id FROM chosen)) AND"""


def characters_in_view(
    database: Reader,
    scopes: Sequence[Scope],
    *,
    learned: bool = False,
    of: Iterable[int] | None = None,
    met: int | None = None,
) -> dict[str, list[CharacterAt]]:
    """Return the characters of videos, each as of its scope, by video and number.

    A view as of a clip never shows what was watched later. Corrections are an exception: they state
    facts that hold throughout the video, whenever they were made.

    Args:
        learned: As they were learned, without corrections.
        of: Only those that these identities (rows) belong to.
        met: Also identities that were first met after the scope, until this clip, each in the
            character that it began in.
    """
    ids = None if of is None else sorted(set(of))
    statement = SQL(_PEOPLE).format(
        view=SQL(VIEW),
        rows=SQL("m.learned" if learned else "m.in_force"),
        met=SQL("view.last_clip" if met is None else "%(met)s"),
        which=SQL("" if ids is None else _OF_IDENTITIES),
        names=SQL("" if ids is None else _NAMES_OF_IDENTITIES),
    )
    parameters = view_parameters(scopes) | {"of": ids, "met": met}
    ((members, names),) = reading_driver(database).execute(statement, parameters).fetchall()
    found = characters_of_rows(members or (), names or (), learned=learned)
    if ids is not None and any(one.character.aliases for every in found.values() for one in every):
        # Somebody else may go by a name that users took from one of these.
        everybody = characters_in_view(database, scopes, learned=learned, met=met)
        found = {
            video: [one for one in every if not set(ids).isdisjoint(one.members)]
            for video, every in everybody.items()
        }
    return {scope.video: found.get(scope.video, []) for scope in scopes}


def characters_at(
    database: Reader, video_id: str, clip: int, *, learned: bool = False
) -> list[CharacterAt]:
    """Return the characters of a video as of ``clip``, by number."""
    scopes = [Scope(video=video_id, last_clip=clip)]
    return characters_in_view(database, scopes, learned=learned)[video_id]


def learned_with(
    database: Reader, video_id: str, identities: Iterable[int], clip: int
) -> list[CharacterAt]:
    """Return the characters of these identities as they were learned until ``clip``, by number."""
    scopes = [Scope(video=video_id, last_clip=clip)]
    return characters_in_view(database, scopes, learned=True, of=identities)[video_id]


def people_in_view(database: Reader, scopes: Sequence[Scope]) -> dict[str, list[Character]]:
    """Return the characters of each video as they were known as of its scope, by number."""
    found = characters_in_view(database, scopes)
    return {video: [one.character for one in every] for video, every in found.items()}


def people_as_of(database: Reader, scope: Scope) -> list[Character]:
    """Return the characters of a video as they were known as of ``scope``, by number."""
    return people_in_view(database, [scope])[scope.video]


def characters_of_rows(
    members: Sequence[Any], names: Sequence[Any], *, learned: bool = False
) -> dict[str, list[CharacterAt]]:
    """Return characters by video, in the order of the members; pure.

    Args:
        members: Video, number of the character, and of each identity row, kind, number, the number
            that it began as, and first clip.
        names: Video, identity's row or None, number or None, name, source, clip, whether ignored.
        learned: Without what users said of names.
    """
    by_character: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for video, number, *fields in members:
        by_character[video, number].append(fields)
    of_identity: dict[int, list[tuple[int, KnownName, bool]]] = defaultdict(list)
    given: dict[tuple[str, int], list[KnownName]] = defaultdict(list)
    for order, (video, identity, number, told, source, clip, ignored) in enumerate(names):
        if identity is not None:
            name = KnownName(name=told, source=source, from_clip=clip)
            of_identity[identity].append((order, name, ignored and not learned))
        elif not learned:
            given[video, number].append(KnownName(name=told, source=source, from_clip=clip))
    found: dict[str, list[CharacterAt]] = {}
    for (video, number), rows in by_character.items():
        joined = {row[3] for row in rows} - {number}
        # Number n always stands for the character that the n-th identity is in.
        by_users = [name for n in (number, *sorted(joined)) for name in given[video, n]]
        one = _character(number, rows, by_users, [of_identity[row[0]] for row in rows])
        found.setdefault(video, []).append(one)
    for characters in found.values():
        # An alias that is somebody's name by now is left out.
        taken = {one.character.name for one in characters}
        for place, one in enumerate(characters):
            aliases = tuple(name for name in one.character.aliases if name not in taken)
            if aliases != one.character.aliases:
                character = one.character.model_copy(update={"aliases": aliases})
                characters[place] = replace(one, character=character)
    return found


def _character(
    number: int,
    rows: Sequence[Any],
    by_users: Sequence[KnownName],
    of_members: Sequence[Sequence[tuple[int, KnownName, bool]]],
) -> CharacterAt:
    ids, kinds, tags, began, clips = zip(*rows, strict=True)
    first = min(clips)
    learned = sorted((one for every in of_members for one in every), key=lambda one: one[0])
    known = [name.model_copy(update={"from_clip": first}) for name in by_users]
    known += [name for _, name, ignored in learned if not ignored]
    names = _unique(known)
    preferred = preferred_name(names)
    # Names that users replaced: earlier texts have them.
    is_corrected = by_users or any(ignored for _, _, ignored in learned)
    replaced = (name for _, name, _ in learned if name.name != preferred)
    former = _unique(replaced) if is_corrected else ()
    character = Character(
        number=number,
        name=preferred,
        faces=tuple(n for n, kind in zip(tags, kinds, strict=True) if kind == IdentityKind.FACE),
        voices=tuple(n for n, kind in zip(tags, kinds, strict=True) if kind == IdentityKind.VOICE),
        aliases=tuple(name.name for name in former),
        joined=tuple(sorted(set(began) - {number})),
    )
    of_members_tags = tuple(f"<{kind}_{n}>" for kind, n in zip(kinds, tags, strict=True))
    return CharacterAt(character, ids, names, first, of_members_tags, began)


def _unique(names: Iterable[KnownName]) -> tuple[KnownName, ...]:
    """Return the first of the names that differ in case only."""
    return tuple({name.name.casefold(): name for name in reversed([*names])}.values())[::-1]


def preferred_name(names: Sequence[KnownName]) -> str | None:
    """Return the most trusted name, the oldest among equals."""
    best = max(
        names,
        key=lambda name: (NAME_SOURCES_BY_TRUST.index(name.source), -name.from_clip),
        default=None,
    )
    return best.name if best else None


def stated_support(
    session: Session, video_id: str, voices: Collection[int] | None = None
) -> list[IdentityStatement]:
    """Return all statements, or of these voices, by row ids, in order of voices and clips."""
    row = IdentityStatementRow
    query = select(row.clip, row.face_id.label("face"), row.voice_id.label("voice"), row.support)
    query = query.where(row.video_id == video_id).order_by(row.voice_id, row.clip, row.id)
    if voices is not None:
        query = query.where(is_any_of(row.voice_id, voices))
    return [IdentityStatement(**fields) for fields in session.execute(query).mappings()]


def identities_of(
    session: Session, video_id: str, rows: Collection[int] | None = None
) -> list[Identity]:
    query = select(IdentityRow).where(IdentityRow.video_id == video_id)
    if rows is not None:
        query = query.where(is_any_of(IdentityRow.id, rows))
    rows_in_order = session.scalars(query.order_by(IdentityRow.id))
    return [Identity.model_validate(row) for row in rows_in_order]


def replace_memberships(
    session: Session,
    identities: Iterable[int],
    learned: Sequence[Membership],
    in_force: Sequence[Membership],
) -> None:
    """Write which characters identities (rows) are in: as learned, and with corrections."""
    where = is_any_of(CharacterMemberRow.identity_id, identities)
    session.execute(delete(CharacterMemberRow).where(where))
    as_learned, as_corrected = set(learned), set(in_force)
    rows = [
        {
            "identity_id": one.identity,
            "number": one.number,
            "from_clip": one.from_clip,
            "to_clip": one.to_clip,
            "learned": one in as_learned,
            "in_force": one in as_corrected,
        }
        for one in dict.fromkeys((*learned, *in_force))
    ]
    if rows:
        session.execute(insert(CharacterMemberRow), rows)


def replace_given_names(
    session: Session, video_id: str, given: Mapping[int, GivenNames], nameless: Iterable[int]
) -> None:
    """Write the names that users gave, by number, and whose learned names they took (rows)."""
    row = CharacterNameRow
    of_video = row.video_id == video_id
    session.execute(delete(row).where(of_video, row.source == USER_SOURCE))
    is_ignored = is_any_of(row.identity_id, nameless)
    learned = update(row).where(of_video, row.identity_id.is_not(None))
    session.execute(learned.values(ignored=is_ignored))
    values = [
        {"video_id": video_id, "number": number, "name": name, "act": given[number].act}
        for number in sorted(given)
        for name in given[number].names
    ]
    if values:
        every = {"source": USER_SOURCE, "from_clip": 0}
        session.execute(insert(row), [one | every for one in values])


def add_name(
    session: Session, video_id: str, identity: int, name: str, source: str, clip: int
) -> None:
    """Add a name from ``clip`` on, learned of an identity (its row)."""
    values = {"video_id": video_id, "identity_id": identity, "name": name, "source": source}
    session.execute(insert(CharacterNameRow).values(values | {"from_clip": clip}))


# Corrections of the people of a video, and the learned data they are laid over.


def lock_corrections(session: Session) -> None:
    """Lock corrections against other writers until this transaction ends; watching continues."""
    session.execute(text("LOCK TABLE corrections IN SHARE ROW EXCLUSIVE MODE"))


def corrections_of(session: Session, video_id: str) -> list[Correction]:
    """Return all corrections of a video by number, including undone ones."""
    query = select(CorrectionRow).where(CorrectionRow.video_id == video_id)
    return [_correction(row) for row in session.scalars(query.order_by(CorrectionRow.number))]


def corrections_of_act(session: Session, act: str) -> list[Correction]:
    """Return the corrections that were made as one, by video and number."""
    row = CorrectionRow
    query = select(row).where(row.act == act).order_by(row.video_id, row.number)
    return [_correction(found) for found in session.scalars(query)]


def corrections_across_videos(session: Session) -> dict[str, list[Correction]]:
    """Return the corrections in force about characters of different videos, by video and number."""
    row = CorrectionRow
    kinds = [str(kind) for kind in ACROSS_VIDEOS]
    query = select(row).where(row.act.is_not(None), row.kind.in_(kinds), row.undone.is_(False))
    corrections: dict[str, list[Correction]] = {}
    for found in session.scalars(query.order_by(row.video_id, row.number)):
        corrections.setdefault(found.video_id, []).append(_correction(found))
    return corrections


def add_correction(
    session: Session,
    video_id: str,
    kind: CorrectionKind,
    told: str,
    numbers: Sequence[int],
    outcomes: Sequence[CorrectedCharacter],
    act: str | None = None,
) -> Correction:
    """Record a correction under the next number; call ``lock_corrections`` before."""
    highest = select(func.max(CorrectionRow.number)).where(CorrectionRow.video_id == video_id)
    correction = Correction(
        number=(session.scalar(highest) or 0) + 1,
        kind=kind,
        told=told,
        numbers=tuple(sorted(set(numbers))),
        outcomes=tuple(outcomes),
        act=act,
        video=video_id,
    )
    values = _values(correction) | {"number": correction.number, "kind": str(kind), "act": act}
    session.execute(insert(CorrectionRow).values(values | {"video_id": video_id}))
    return correction


def change_correction(session: Session, video_id: str, changed: Correction) -> None:
    """Update the correction of that number: undone, or about fewer characters."""
    where = and_(CorrectionRow.video_id == video_id, CorrectionRow.number == changed.number)
    session.execute(update(CorrectionRow).where(where).values(_values(changed)))


def _values(correction: Correction) -> dict[str, Any]:
    """Return the columns of what may change."""
    return {
        "told": correction.told,
        "numbers": list(correction.numbers),
        "outcomes": [outcome.model_dump(mode="json") for outcome in correction.outcomes],
        "undone": correction.undone,
    }


def _correction(row: CorrectionRow) -> Correction:
    return Correction(
        number=row.number,
        kind=CorrectionKind(row.kind),
        told=row.told,
        numbers=tuple(row.numbers),
        outcomes=tuple(CorrectedCharacter.model_validate(outcome) for outcome in row.outcomes),
        undone=row.undone,
        act=row.act,
        video=row.video_id,
    )


def claims_of(session: Session, video_id: str, last_clip: int) -> list[IdentityStatement]:
    """Return the total support of each face and voice until a clip, with the latest reason."""
    row = IdentityStatementRow
    last = func.max(row.id)
    totals = (
        select(
            row.face_id.label("face"),
            row.voice_id.label("voice"),
            func.sum(row.support).label("support"),
            last.label("last"),
        )
        .where(row.video_id == video_id, row.clip <= last_clip)
        .group_by(row.face_id, row.voice_id)
        .subquery()
    )
    query = (
        select(row.clip, totals.c.face, totals.c.voice, totals.c.support, row.reason)
        .join(row, row.id == totals.c.last)
        .order_by(totals.c.last)
    )
    return [IdentityStatement(**fields) for fields in session.execute(query).mappings()]


def appearances_of(
    session: Session, video_id: str, identities: Sequence[int], last_clip: int
) -> dict[int, tuple[int, TimeSpan]]:
    """Return how often and from when to when each was seen until a clip, or heard if never seen."""
    appearances: dict[int, tuple[int, TimeSpan]] = {}
    for table in (UtteranceRow, SightingRow):
        query = select(
            table.identity_id, func.count(), func.min(table.start_ms), func.max(table.end_ms)
        )
        query = query.where(table.video_id == video_id, table.clip <= last_clip)
        query = query.where(is_any_of(table.identity_id, identities)).group_by(table.identity_id)
        appearances |= {
            identity or 0: (count, TimeSpan.of(start, end))
            for identity, count, start, end in session.execute(query)
        }
    return appearances
