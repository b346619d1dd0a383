"""Memories with vectors, mentioned identities, strengths, and what superseded them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    and_,
    false,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session, defer

from domain.memories import Memory, MemoryDraft, MemoryKind, MemorySource, Scope
from domain.time import TimeSpan
from store.driver import HALFVEC, allocate_ids, copy_rows, pack_halfvec, unpack_halfvecs
from store.queries.conditions import is_any_of
from store.tables.schema import (
    ClipRow,
    IdentityRow,
    MemoryLinkRow,
    MemoryRow,
    MemoryStrengthRow,
    UtteranceRow,
)

Vector = Sequence[float] | NDArray[np.float32]

_COLUMNS = {
    "id": "int8",
    "video_id": "text",
    "clip": "int4",
    "kind": "text",
    "text": "text",
    "start_ms": "int8",
    "end_ms": "int8",
    "source": "text",
    "speaker": "text",
    "embedding": HALFVEC,
}


@dataclass(frozen=True)
class MemoryAt:
    """A stored memory with its vector, shape (D,)."""

    memory: Memory
    vector: NDArray[np.float32]


def add_memories(
    session: Session,
    video_id: str,
    clip: int,
    drafts: Sequence[MemoryDraft],
    vectors: Sequence[Vector],
) -> list[int]:
    """Store memories of one clip; return their ids in order."""
    ids = allocate_ids(session, "memories", len(drafts)) if drafts else []
    rows = [
        (
            memory_id,
            video_id,
            clip,
            str(draft.kind),
            draft.text,
            draft.span.start_ms,
            draft.span.end_ms,
            str(draft.source),
            draft.speaker,
            pack_halfvec(vector),
        )
        for memory_id, draft, vector in zip(ids, drafts, vectors, strict=True)
    ]
    copy_rows(session, "memories", _COLUMNS, rows)
    return ids


def link_memories(session: Session, pairs: Iterable[tuple[int, int]]) -> None:
    """Record that memory (first) mentions identity (second)."""
    types = {"memory_id": "int8", "identity_id": "int8"}
    copy_rows(session, "memory_links", types, sorted(set(pairs)))


def strengthen(session: Session, memory_ids: Sequence[int], clip: int) -> None:
    """Record that these memories were confirmed at ``clip``."""
    rows = [{"memory_id": memory_id, "clip": clip} for memory_id in memory_ids]
    if rows:
        session.execute(insert(MemoryStrengthRow), rows)


def supersede(session: Session, video_id: str, memory_ids: Sequence[int], clip: int) -> None:
    """Supersede memories of a video after ``clip``; those superseded earlier are left unchanged."""
    where = and_(
        MemoryRow.video_id == video_id,
        MemoryRow.id.in_(memory_ids),
        MemoryRow.superseded_at.is_(None),
    )
    session.execute(update(MemoryRow).where(where).values(superseded_at=clip))


def closest_fact(
    session: Session, video_id: str, people: Sequence[Collection[int]], vector: Vector
) -> tuple[int, float] | None:
    """Return the open semantic memory closest to ``vector`` about exactly these people.

    ``people``: the identities of each: a face and a voice are one person.

    Returns:
        Its id and cosine, or None if there is none.
    """
    identities = sorted({identity for person in people for identity in person})
    linked = (
        select(func.array_agg(MemoryLinkRow.identity_id))
        .where(MemoryLinkRow.memory_id == MemoryRow.id)
        .scalar_subquery()
    )
    about = type_coerce(linked, ARRAY(BigInteger))
    all_of_them = (about.overlap(sorted(person)) for person in people)
    distance = MemoryRow.embedding.cosine_distance(vector)
    query = (
        select(MemoryRow.id, distance)
        .where(MemoryRow.video_id == video_id, MemoryRow.kind != str(MemoryKind.EPISODIC))
        .where(MemoryRow.superseded_at.is_(None))
        .where(about.contained_by(identities) if people else linked.is_(None), *all_of_them)
        .order_by(distance, MemoryRow.id)
        .limit(1)
    )
    row = session.execute(query).first()
    return (row[0], 1.0 - row[1]) if row else None


def memories_of_clips(
    session: Session, video_id: str, clips: Sequence[int], as_of: int
) -> list[MemoryAt]:
    """Return the memories of these clips as of clip ``as_of``, in order of time."""
    query = _visible(as_of).where(MemoryRow.video_id == video_id, is_any_of(MemoryRow.clip, clips))
    return _read(session, query.order_by(MemoryRow.clip, MemoryRow.start_ms, MemoryRow.id), as_of)


def facts_about(
    session: Session, video_id: str, identity_ids: Iterable[int], as_of: int, limit: int
) -> list[Memory]:
    """Return the latest open semantic memories about any of these identities, oldest first."""
    mentions = select(MemoryLinkRow.memory_id).where(
        MemoryLinkRow.identity_id.in_(list(identity_ids))
    )
    query = (
        _visible(as_of)
        .where(MemoryRow.video_id == video_id, MemoryRow.kind != str(MemoryKind.EPISODIC))
        .where(or_(MemoryRow.id.in_(mentions), MemoryRow.kind == str(MemoryKind.PLOT)))
        .order_by(MemoryRow.clip.desc(), MemoryRow.id.desc())
        .limit(limit)
    )
    return [stored.memory for stored in reversed(_read(session, query, as_of))]


def _visible(as_of: int) -> Select[Any]:
    open_then = or_(MemoryRow.superseded_at.is_(None), MemoryRow.superseded_at > as_of)
    return select(MemoryRow).where(MemoryRow.clip <= as_of, open_then)


def _read(session: Session, query: Select[Any], as_of: int) -> list[MemoryAt]:
    """Run ``query``; vectors are fetched packed, since parsing text would take most of the time."""
    light = query.options(defer(MemoryRow.embedding), defer(MemoryRow.words))
    results = session.execute(light.add_columns(func.halfvec_send(MemoryRow.embedding))).all()
    ids = [row.id for row, _ in results]
    tags, weights = tags_of(session, ids), strengths(session, ids, as_of)
    vectors = unpack_halfvecs(packed for _, packed in results)
    rows = [row for row, _ in results]
    return [
        MemoryAt(
            Memory(
                id=row.id,
                video=row.video_id,
                clip=row.clip,
                kind=MemoryKind(row.kind),
                text=row.text,
                span=TimeSpan.of(row.start_ms, row.end_ms),
                source=MemorySource(row.source),
                weight=1 + weights.get(row.id, 0),
                speaker=row.speaker,
                tags=tags.get(row.id, ()),
            ),
            vector,
        )
        for row, vector in zip(rows, vectors, strict=True)
    ]


def tags_of(session: Session, memory_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the tags of the identities that each memory mentions, such as ``<face_3>``."""
    query = (
        select(MemoryLinkRow.memory_id, IdentityRow.kind, IdentityRow.number)
        .join(IdentityRow, IdentityRow.id == MemoryLinkRow.identity_id)
        .where(is_any_of(MemoryLinkRow.memory_id, memory_ids))
        .order_by(MemoryLinkRow.memory_id, IdentityRow.kind, IdentityRow.number)
    )
    tags: dict[int, tuple[str, ...]] = {}
    for memory_id, kind, number in session.execute(query):
        tags[memory_id] = (*tags.get(memory_id, ()), f"<{kind}_{number}>")
    return tags


def strengths(
    session: Session | Connection, memory_ids: Sequence[int], as_of: int
) -> dict[int, int]:
    """Return how often each memory was confirmed by clip ``as_of``; others are left out."""
    query = (
        select(MemoryStrengthRow.memory_id, func.count())
        .where(is_any_of(MemoryStrengthRow.memory_id, memory_ids), MemoryStrengthRow.clip <= as_of)
        .group_by(MemoryStrengthRow.memory_id)
    )
    return dict(session.execute(query).all())


class ClipText(NamedTuple):
    """A clip's span, and its lines as text."""

    start_ms: int
    end_ms: int
    text: str


def clip_texts(session: Session, video: str) -> list[ClipText]:
    """Return every clip of a video that has memories, in order."""
    rows = session.execute(
        select(ClipRow.start_ms, ClipRow.end_ms, ClipRow.text)
        .where(ClipRow.video_id == video, ClipRow.text != "")
        .order_by(ClipRow.clip)
    )
    return [ClipText._make(row) for row in rows]


def memories_within(session: Session, scope: Scope, spans: Sequence[TimeSpan]) -> list[str]:
    """Return the memories in view of the clips that overlap one of ``spans``."""
    line, clip = MemoryRow, ClipRow
    ends = [(s.start_ms, max(s.end_ms, s.start_ms + 1)) for s in spans]
    overlapping = [and_(clip.start_ms < end, clip.end_ms > start) for start, end in ends]
    texts = session.scalars(
        select(line.text)
        .join(clip, and_(clip.video_id == line.video_id, clip.clip == line.clip))
        .where(
            line.video_id == scope.video, line.clip <= scope.last_clip, or_(false(), *overlapping)
        )
        .where(or_(line.superseded_at.is_(None), line.superseded_at > scope.last_clip))
        .order_by(line.clip, line.id)
    )
    return list(texts)


def spoken_languages(session: Session, video: str, last_clip: int) -> list[str]:
    """Return the recognised languages of a video up to a clip, the most frequent first."""
    row = UtteranceRow
    languages = session.scalars(
        select(row.language)
        .where(
            row.video_id == video, row.clip <= last_clip, row.origin == "speech", row.language != ""
        )
        .group_by(row.language)
        .order_by(func.count().desc(), row.language)
    )
    return list(languages)
