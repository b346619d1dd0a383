"""Memories with vectors, links, strengths and what superseded them; the lines of transcripts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    cast,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG
from sqlalchemy.orm import Session, defer

from domain.memories import Memory, MemoryDraft, MemoryKind, MemorySource, Scope
from domain.people import TAG_KINDS
from domain.time import TimeSpan
from store.driver import HALFVEC, allocate_ids, copy_rows, pack_halfvec, unpack_halfvecs
from store.queries.conditions import is_any_of, is_any_text
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


MARK_START, MARK_END = "\x02", "\x03"
"""Stand around the words of a line that were searched for."""
_ENGLISH = cast(literal("english"), REGCONFIG)
_MARKED = f"StartSel={MARK_START}, StopSel={MARK_END}, HighlightAll=true"


def clips_around(
    session: Session, scope: Scope, at_ms: int, before: int, count: int
) -> tuple[int, int, TimeSpan | None, TimeSpan | None] | None:
    """Return ``count`` clips, up to ``before`` of them before a moment; None where there are none.

    They are the first and the last, and the spans of the clips just before and after these; None
    at either end.

    A moment in a gap counts as the clip after it, one after the end as the last clip.
    """
    row = ClipRow
    seen = and_(row.video_id == scope.video, row.clip <= scope.last_clip)
    at_moment = select(func.min(row.clip)).where(seen, row.end_ms > at_ms)
    last_clip = select(func.max(row.clip)).where(seen)
    either = func.coalesce(at_moment.scalar_subquery(), last_clip.scalar_subquery())
    clip = session.scalar(select(either))
    if clip is None:
        return None
    first = max(0, clip - before)
    wide = and_(row.clip >= first - 1, row.clip <= first + count)
    query = select(row.clip, row.start_ms, row.end_ms).where(seen, wide).order_by(row.clip)
    spans = {number: TimeSpan.of(start, end) for number, start, end in session.execute(query)}
    inside = [number for number in spans if first <= number < first + count]
    first, last = inside[0], inside[-1]
    return first, last, spans.get(first - 1), spans.get(last + 1)


def lines_of_clips(
    session: Session, scope: Scope, first: int, last: int, sources: Collection[str], limit: int
) -> list[Memory]:
    """Return the first ``limit`` lines from clip ``first`` to clip ``last``, in order of time."""
    row = MemoryRow
    query = _lines(scope, sources, row.text).where(row.clip >= first, row.clip <= last)
    return _read_lines(session, query.limit(limit))


def lines_named(
    session: Session, scope: Scope, ids: Collection[int], sources: Collection[str]
) -> list[Memory]:
    """Return those of these lines that are in scope and of these sources, in order of time."""
    query = _lines(scope, sources, MemoryRow.text).where(is_any_of(MemoryRow.id, ids))
    return _read_lines(session, query)


def lines_with_words(
    session: Session,
    scope: Scope,
    words: str,
    people: Sequence[tuple[str, tuple[str, ...]]],
    sources: Collection[str],
    limit: int,
) -> tuple[list[Memory], int]:
    """Return the first ``limit`` lines with all these words and people, and how many there are.

    Words match by stem and are marked; those in quotation marks match as a phrase. Where no line
    matches so, lines with the words as they are written are returned, without marks.
    """
    row = MemoryRow
    sought: ColumnElement[Any] = func.websearch_to_tsquery(_ENGLISH, words)
    for name, tags in people:
        # An empty query matches nothing, and is nothing beside another.
        either: ColumnElement[Any] = func.phraseto_tsquery(_ENGLISH, name)
        for tag in tags:
            either = either.op("||")(
                func.plainto_tsquery(_ENGLISH, tag.strip("<>").replace("_", ""))
            )
        sought = sought.op("&&")(either)
    marked = func.ts_headline(_ENGLISH, row.text, sought, _MARKED)
    found = _counted(session, scope, sources, marked, row.words.op("@@")(sought), limit)
    # Words that may be a part of a tag such as ``<face_1>``, which nobody reads, match nothing.
    core = words.strip().casefold().strip("<>_0123456789")
    if found[1] or people or any(core in kind for kind in TAG_KINDS):
        return found
    contains = row.text.icontains(words.strip(), autoescape=True)
    return _counted(session, scope, sources, row.text, contains, limit)


def _counted(
    session: Session,
    scope: Scope,
    sources: Collection[str],
    text: Any,
    condition: ColumnElement[bool],
    limit: int,
) -> tuple[list[Memory], int]:
    counting = _lines(scope, sources, MemoryRow.text).where(condition).order_by(None)
    total = session.scalar(counting.with_only_columns(func.count())) or 0
    lines = _read_lines(session, _lines(scope, sources, text).where(condition).limit(limit))
    return lines, total


def _lines(scope: Scope, sources: Collection[str], text: Any) -> Select[*tuple[Any, ...]]:
    row = MemoryRow
    holds = or_(row.superseded_at.is_(None), row.superseded_at > scope.last_clip)
    shown = and_(row.kind == str(MemoryKind.EPISODIC), is_any_text(row.source, sources))
    return (
        select(
            row.id, row.video_id, row.clip, row.source, text, row.speaker, row.start_ms, row.end_ms
        )
        .where(row.video_id == scope.video, row.clip <= scope.last_clip, holds, shown)
        .order_by(row.start_ms, row.id)
    )


def _read_lines(session: Session, query: Select[*tuple[Any, ...]]) -> list[Memory]:
    return [spoken_line(tuple(row)) for row in session.execute(query)]


def spoken_line(row: tuple[Any, ...]) -> Memory:
    """Return the episodic line of a row: id, video, clip, source, text, speaker, start and end."""
    number, video, clip, source, text, speaker, start, end = row
    return Memory(
        id=number,
        video=video,
        clip=clip,
        kind=MemoryKind.EPISODIC,
        source=MemorySource(source),
        text=text,
        speaker=speaker,
        span=TimeSpan.of(start, end),
    )
