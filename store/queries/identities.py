"""Identities with their exemplars, and the statements that join faces to voices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    TableValuedAlias,
    and_,
    case,
    cast,
    column,
    delete,
    false,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from domain.media import IdentityKind
from domain.people import Identity, IdentityStatement
from domain.time import TimeSpan
from store.queries.conditions import is_any_of
from store.tables.schema import (
    CharacterMemberRow,
    CharacterNameRow,
    ExemplarRow,
    IdentityRow,
    IdentityStatementRow,
    SightingRow,
    UtteranceRow,
    VideoRow,
)

Sighted = tuple[IdentityKind, int, int, tuple[int, ...]]
"""A sighting: its kind, begin and end in milliseconds, and box in pixels."""


@dataclass(frozen=True)
class KnownIdentity:
    """An identity and its centre, the mean of its exemplars, shape (D,), not normalised.

    The dot product of a unit vector and that mean is its mean cosine to the exemplars.
    """

    identity: Identity
    centre: Sequence[float]


def known_identities(session: Session, video_id: str, kind: IdentityKind) -> list[KnownIdentity]:
    """Return the identities of one kind that have exemplars, by number."""
    centre = func.avg(ExemplarRow.vector, type_=VECTOR())
    of_kind = select(IdentityRow.id).where(
        IdentityRow.video_id == video_id, IdentityRow.kind == str(kind)
    )
    means = (
        select(ExemplarRow.identity_id, centre.label("centre"))
        .where(ExemplarRow.identity_id.in_(of_kind))
        .group_by(ExemplarRow.identity_id)
        .subquery()
    )
    query = select(IdentityRow, means.c.centre).join(means, means.c.identity_id == IdentityRow.id)
    rows = session.execute(query.order_by(IdentityRow.number))
    return [KnownIdentity(Identity.model_validate(row), mean) for row, mean in rows]


def add_identities(
    session: Session, video_id: str, kind: IdentityKind, count: int, clip: int
) -> list[Identity]:
    """Create ``count`` identities with the next free numbers of their kind, each its own character.

    Numbers of characters are not given again, whoever is deleted or forgotten.
    """
    if not count:
        return []
    highest = select(func.max(IdentityRow.number)).where(
        IdentityRow.video_id == video_id, IdentityRow.kind == str(kind)
    )
    last = session.scalar(highest)
    start = 0 if last is None else last + 1
    counted = update(VideoRow).where(VideoRow.id == video_id)
    counted = counted.values(characters=VideoRow.characters + count)
    characters = session.scalars(counted.returning(VideoRow.characters)).one() - count
    rows = [
        {
            "video_id": video_id,
            "kind": str(kind),
            "number": start + n,
            "first_clip": clip,
            "character": characters + n,
        }
        for n in range(count)
    ]
    returning = insert(IdentityRow).returning(IdentityRow, sort_by_parameter_order=True)
    added = [Identity.model_validate(row) for row in session.scalars(returning, rows)]
    session.execute(
        insert(CharacterMemberRow),
        [{"identity_id": i.id, "number": i.character, "from_clip": clip} for i in added],
    )
    return added


def identity_rows(
    session: Session, video_id: str, wanted: Iterable[tuple[IdentityKind, int]]
) -> dict[tuple[IdentityKind, int], int]:
    """Return the row ids of those of ``wanted`` that exist, by kind and number."""
    pairs = [(str(kind), number) for kind, number in wanted]
    if not pairs:
        return {}
    query = select(IdentityRow.kind, IdentityRow.number, IdentityRow.id).where(
        IdentityRow.video_id == video_id, tuple_(IdentityRow.kind, IdentityRow.number).in_(pairs)
    )
    return {(IdentityKind(kind), number): row for kind, number, row in session.execute(query)}


def move_first_clips_back(session: Session, identity_ids: Iterable[int], clip: int) -> None:
    """Move the first clip of identities back that are met in an earlier clip watched late."""
    ids = list(identity_ids)
    member, identity = CharacterMemberRow, IdentityRow
    began = and_(is_any_of(identity.id, ids), identity.first_clip > clip)
    first = and_(member.identity_id == identity.id, member.from_clip == identity.first_clip)
    options = {"synchronize_session": False}
    moved = update(member).where(began, first).values(from_clip=clip)
    session.execute(moved, execution_options=options)
    moved = update(identity).where(began).values(first_clip=clip)
    session.execute(moved, execution_options=options)


def exemplars_of(session: Session, identity_ids: Sequence[int]) -> dict[int, list[ExemplarRow]]:
    """Return the exemplars of each identity, oldest first."""
    query = select(ExemplarRow).where(ExemplarRow.identity_id.in_(identity_ids))
    exemplars: dict[int, list[ExemplarRow]] = {row_id: [] for row_id in identity_ids}
    for row in session.scalars(query.order_by(ExemplarRow.id)):
        exemplars[row.identity_id].append(row)
    return exemplars


def change_exemplars(
    session: Session, remove: Sequence[int], add: Sequence[Mapping[str, Any]]
) -> None:
    """Delete exemplars by id and insert rows of identity_id, sighting_id, quality and vector."""
    if remove:
        session.execute(delete(ExemplarRow).where(ExemplarRow.id.in_(remove)))
    if add:
        session.execute(insert(ExemplarRow), [dict(row) for row in add])


def sighted_identities(session: Session, video_id: str, clip: int) -> dict[Sighted, Identity]:
    row = SightingRow
    query = (
        select(row.start_ms, row.end_ms, row.box, IdentityRow)
        .join(IdentityRow, IdentityRow.id == row.identity_id)
        .where(row.video_id == video_id, row.clip == clip)
    )
    return {
        (IdentityKind(identity.kind), start_ms, end_ms, tuple(box or ())): Identity.model_validate(
            identity
        )
        for start_ms, end_ms, box, identity in session.execute(query)
    }


def named_voices(session: Session, video_id: str, names: Iterable[str]) -> dict[str, Identity]:
    """Return the voices that the source itself names, by name.

    If a character has several voices, the one that the name was learned from counts.
    """
    query = (
        select(CharacterNameRow.name, IdentityRow)
        .join(IdentityRow, IdentityRow.id == CharacterNameRow.identity_id)
        .where(IdentityRow.video_id == video_id, CharacterNameRow.source == "caption")
        .where(CharacterNameRow.name.in_(list(names)), IdentityRow.kind == "voice")
        .order_by(IdentityRow.number.desc())
    )
    return {name: Identity.model_validate(row) for name, row in session.execute(query)}


def add_statements(
    session: Session,
    video_id: str,
    statements: Sequence[IdentityStatement],
    ids: Mapping[tuple[IdentityKind, int], int],
) -> None:
    """Record support for "this face is this voice"; ``ids`` maps identity numbers to rows."""
    rows = [
        {
            "video_id": video_id,
            "clip": item.clip,
            "face_id": ids[(IdentityKind.FACE, item.face)],
            "voice_id": ids[(IdentityKind.VOICE, item.voice)],
            "support": item.support,
            "reason": item.reason,
        }
        for item in statements
    ]
    if rows:
        session.execute(insert(IdentityStatementRow), rows)


def was_stated(session: Session, video_id: str, face: int, voice: int, reason: str) -> bool:
    """Check whether this face and voice (numbers) have a statement with that reason prefix."""
    row = IdentityStatementRow
    ids = identity_rows(session, video_id, [(IdentityKind.FACE, face), (IdentityKind.VOICE, voice)])
    query = select(row.id).where(
        row.face_id == ids.get((IdentityKind.FACE, face)),
        row.voice_id == ids.get((IdentityKind.VOICE, voice)),
        row.reason.startswith(reason, autoescape=True),
    )
    return session.scalar(query.limit(1)) is not None


@dataclass(frozen=True)
class SightingAt:
    """When an identity was seen or heard, and where on the frame (x0, y0, x1, y1)."""

    number: int
    start_ms: int
    end_ms: int
    box: tuple[int, ...] | None


def sightings_of(session: Session, video_id: str, kind: IdentityKind) -> list[SightingAt]:
    """Return every sighting of a kind in a video, by time, then by identity number."""
    return _sightings(session, IdentityRow.video_id == video_id, IdentityRow.kind == str(kind))


def _sightings(session: Session, *where: ColumnElement[bool]) -> list[SightingAt]:
    query = (
        select(IdentityRow.number, SightingRow.start_ms, SightingRow.end_ms, SightingRow.box)
        .join(IdentityRow, IdentityRow.id == SightingRow.identity_id)
        .where(*where)
        .order_by(SightingRow.start_ms, IdentityRow.number, SightingRow.id)
    )
    return [
        SightingAt(number, start, end, tuple(box) if box else None)
        for number, start, end, box in session.execute(query)
    ]


def voice_and_face_sightings(
    session: Session, video_id: str, voice_id: int, clip: int, limit: int
) -> tuple[list[int], list[SightingAt], list[SightingAt]]:
    """Return the last clips of a voice up to ``clip``, and its and all faces' sightings in them.

    ``voice_id`` is the voice's row; there are at most ``limit`` clips.
    """
    row = SightingRow
    of_voice = and_(row.video_id == video_id, row.identity_id == voice_id, row.clip <= clip)
    clips = select(row.clip).where(of_voice).distinct().order_by(row.clip.desc()).limit(limit)
    latest = sorted(session.scalars(clips))
    return (
        latest,
        _sightings(session, row.identity_id == voice_id, row.clip.in_(latest)),
        _sightings(
            session,
            row.video_id == video_id,
            row.clip.in_(latest),
            IdentityRow.kind == str(IdentityKind.FACE),
        ),
    )


_Centre = tuple[IdentityKind, int, NDArray[np.float32]]
"""The kind of an identity, how many exemplars it has, and their sum, shape (D,)."""


def appearance_spans(
    session: Session, video_id: str, identities: Sequence[int], gap_ms: int, last_clip: int
) -> dict[int, list[TimeSpan]]:
    """Return when each of these identities appears, in order; gaps up to ``gap_ms`` are joined.

    In a clip without a sighting of an identity its utterances count. Clips after ``last_clip`` do
    not.
    """
    sightings, utterances = (
        _spans_by_clip(of, video_id, identities, last_clip) for of in (SightingRow, UtteranceRow)
    )
    seen, said = sightings.c, utterances.c
    silent = select(utterances).where(
        ~select(seen.clip).where(seen.identity == said.identity, seen.clip == said.clip).exists()
    )
    appearances = select(sightings).union_all(silent).subquery()
    row = appearances.c
    previous_end = func.max(row.end).over(
        partition_by=row.identity, order_by=(row.start, row.end), rows=(None, -1)
    )
    begins = case((row.start - previous_end <= gap_ms, 0), else_=1).label("begins")
    marked = select(row.identity, row.start, row.end, begins).subquery().c
    order = (marked.start, marked.end)
    number = func.sum(marked.begins).over(partition_by=marked.identity, order_by=order)
    numbered = (
        select(marked.identity, marked.start, marked.end, number.label("number")).subquery().c
    )
    start = func.min(numbered.start)
    query = select(numbered.identity, start, func.max(numbered.end))
    spans: dict[int, list[TimeSpan]] = {}
    grouped = query.group_by(numbered.identity, numbered.number).order_by(start)
    for identity, start_ms, end_ms in session.execute(grouped):
        spans.setdefault(identity, []).append(TimeSpan.of(start_ms, end_ms))
    return spans


def _spans_by_clip(table: Any, video_id: str, identities: Sequence[int], last_clip: int) -> CTE:
    """Return the span from the first to the last appearance of each identity in each clip."""
    start, end = func.min(table.start_ms).label("start"), func.max(table.end_ms).label("end")
    query = select(table.identity_id.label("identity"), table.clip.label("clip"), start, end)
    matching = query.where(table.video_id == video_id, is_any_of(table.identity_id, identities))
    return matching.where(table.clip <= last_clip).group_by(table.identity_id, table.clip).cte()


_IS_SEEN = SightingRow.box.is_not(None)
"""A sighting of a voice has no place on a frame."""


def last_appearances(
    session: Session, identities: Sequence[int], last_clip: int | None = None
) -> dict[int, tuple[int, TimeSpan, bool]]:
    """Return clip and time of each identity's last sighting, or utterance if it has no sighting.

    With whether it was seen then.

    ``last_clip``: those in later clips do not count; None: all do.
    """
    last: dict[int, tuple[int, TimeSpan, bool]] = {}
    for table, seen in ((UtteranceRow, false()), (SightingRow, _IS_SEEN)):
        query = select(table.identity_id, table.clip, table.start_ms, table.end_ms, seen).where(
            is_any_of(table.identity_id, identities)
        )
        if last_clip is not None:
            query = query.where(table.clip <= last_clip)
        newest = query.ext(distinct_on(table.identity_id)).order_by(
            table.identity_id, table.end_ms.desc(), table.id
        )
        last |= {
            identity or 0: (clip, TimeSpan.of(start, end), bool(was_seen))
            for identity, clip, start, end, was_seen in session.execute(newest)
        }
    return last


def best_crops(session: Session, identities: Sequence[int], last_clip: int) -> dict[int, str]:
    """Return the SHA-256 of the best crop, until a clip, of each identity that has one."""
    row = SightingRow
    best = (
        select(row.identity_id, row.blob)
        .where(is_any_of(row.identity_id, identities), row.blob.is_not(None))
        .where(row.clip <= last_clip)
        .ext(distinct_on(row.identity_id))
        .order_by(row.identity_id, row.quality.desc(), row.id)
    )
    return {identity: blob for identity, blob in session.execute(best) if blob}


def centres_of(session: Session, identities: Sequence[int]) -> Mapping[int, _Centre]:
    mean = func.vector_send(func.avg(ExemplarRow.vector, type_=VECTOR()))
    query = (
        select(IdentityRow.id, IdentityRow.kind, func.count(), mean)
        .join(ExemplarRow, ExemplarRow.identity_id == IdentityRow.id)
        .where(is_any_of(IdentityRow.id, identities))
        .group_by(IdentityRow.id, IdentityRow.kind)
    )
    return {
        identity: (
            IdentityKind(kind),
            count,
            count * np.frombuffer(sent[4:], dtype=">f4").astype(np.float32),
        )
        for identity, kind, count, sent in session.execute(query)
    }


def seen_together(
    session: Session, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[bool]:
    """Check for each pair of groups whether members of both are in one frame."""
    firsts, seconds = ([pair[side] for pair in pairs] for side in (0, 1))
    first, second = _numbered(firsts, "first_group"), _numbered(seconds, "second_group")
    a, b = aliased(SightingRow), aliased(SightingRow)
    query = (
        select(first.c.n)
        .distinct()
        .join(second, second.c.n == first.c.n)
        .join(a, a.identity_id == first.c.identity)
        .join(
            b,
            (b.identity_id == second.c.identity) & (b.clip == a.clip) & (b.start_ms == a.start_ms),
        )
        .where(a.video_id == b.video_id, a.box.is_not(None), b.box.is_not(None))
    )
    together = set(session.scalars(query))
    return [n in together for n in range(len(pairs))]


def _numbered(lists: Sequence[Sequence[int]], name: str) -> TableValuedAlias:
    """Return a table of identities with the number of their list.

    It takes two parameters, however many identities there are.
    """
    rows = [(n, identity) for n, identities in enumerate(lists) for identity in identities]
    numbers = cast([n for n, _ in rows], ARRAY(Integer))
    identities = cast([identity for _, identity in rows], ARRAY(BigInteger))
    columns = (column("n", Integer), column("identity", BigInteger))
    return func.unnest(numbers, identities).table_valued(*columns, name=name).render_derived()
