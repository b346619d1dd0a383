"""What a search reads: lines, segments, edges and mentions. Exact, and as of a clip.

Within a video everything is read in order and scored exactly: an approximate index that is filtered
by video afterwards misses most of what it should find.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Text,
    and_,
    bindparam,
    func,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.memories import Edge, Relation, Scope
from store.driver import driver_of
from store.queries.clip_contents import KEYFRAME_COLUMNS, KeyframeOnClip
from store.queries.conditions import valid_at
from store.tables.schema import (
    ClipRow,
    EdgeRow,
    IdentityRow,
    KeyframeRow,
    MemoryLinkRow,
    MemoryRow,
    SegmentRevisionRow,
    SegmentRow,
)

Matrix = NDArray[np.float32]


class StoredLine(NamedTuple):
    """A memory as read by a search; it is superseded after clip ``superseded_at``."""

    id: int
    clip: int
    start_ms: int
    end_ms: int
    kind: str
    text: str
    source: str
    speaker: str | None
    superseded_at: int | None


class CellRow(NamedTuple):
    """The span of a clip."""

    clip: int
    start_ms: int
    end_ms: int


class SegmentRevision(NamedTuple):
    """A segment revision, valid from ``from_clip`` until ``to_clip``."""

    segment: int
    number: int
    revision: int
    label: str
    summary: str
    clips: tuple[int, ...]
    from_clip: int
    to_clip: int | None


@dataclass(frozen=True)
class Lines:
    """Memories with vectors: ``vectors`` has shape (N, D), zeros for rows without one."""

    rows: list[StoredLine]
    vectors: Matrix


@dataclass(frozen=True)
class Revisions:
    """Segment revisions with vectors, in order of segment number and revision."""

    rows: list[SegmentRevision]
    vectors: Matrix


def _vectors(packed: Iterable[bytes | None]) -> Matrix:
    """Decode results of ``halfvec_send``: two 16-bit numbers (size, unused), then halves."""
    values = list(packed)
    size = next((int.from_bytes(v[:2], "big") for v in values if v is not None), 0)
    blank = bytes(4 + 2 * size)
    data = b"".join(blank if v is None else v for v in values)
    return widen_halves(np.frombuffer(data, dtype=">u2").reshape(-1, 2 + size)[:, 2:])


_BLOCK_ROWS = 256


def widen_halves(halves: NDArray[np.uint16]) -> Matrix:
    """Convert finite 16-bit floats (N, D), given as bits, to 32 bits.

    By integer arithmetic over many at once, ten times as fast as NumPy's conversion one by one. The
    exponent is moved to its place, where it is off by 112, which a product corrects, also for
    subnormal numbers (IEEE 754).
    """
    result = np.empty(halves.shape, dtype=np.uint32)
    for start in range(0, len(halves), _BLOCK_ROWS):
        bits, rows = halves[start : start + _BLOCK_ROWS].astype(np.uint32), result[start:]
        size = ((bits & 0x7FFF) << 13).view(np.float32) * np.float32(2.0**112)
        rows[: len(bits)] = size.view(np.uint32) | (bits & 0x8000) << 16
    return result.view(np.float32)


def _packed(column: InstrumentedAttribute[Any]) -> ColumnElement[bytes]:
    return func.halfvec_send(column)


_LINES = """
    SELECT id, clip, start_ms, end_ms, kind, text, source, speaker, superseded_at,
           halfvec_send(embedding)
    FROM memories WHERE video_id = %s AND clip > %s AND clip <= %s ORDER BY clip, start_ms, id
"""


def lines_between(session: Session, video: str, after_clip: int, last_clip: int) -> Lines:
    """Return the memories of clips ``after_clip < clip <= last_clip``, by clip, time and id.

    Fetched by the driver in binary, since there may be very many.
    """
    with driver_of(session.connection()).cursor(binary=True) as cursor:
        rows = cursor.execute(_LINES, (video, after_clip, last_clip)).fetchall()
    return Lines([StoredLine._make(r[:-1]) for r in rows], _vectors(r[-1] for r in rows))


def vectors_of(connection: Connection, ids: Sequence[int]) -> tuple[NDArray[np.int64], Matrix]:
    """Return the ids (K,) of those of these memories with a vector, unordered, and the vectors."""
    query = """SELECT id, halfvec_send(embedding) FROM memories
               WHERE id = ANY(%s) AND embedding IS NOT NULL"""
    with driver_of(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(query, (list(ids),)).fetchall()
    return np.array([row[0] for row in rows], np.int64), _vectors(row[1] for row in rows)


def superseded_memories(session: Session, video: str) -> dict[int, int]:
    """Return the superseded memories, each with the clip after which it is."""
    rows = session.execute(
        select(MemoryRow.id, MemoryRow.superseded_at).where(
            MemoryRow.video_id == video, MemoryRow.superseded_at.is_not(None)
        )
    )
    return {memory: clip for memory, clip in rows if clip is not None}


def cells_between(session: Session, video: str, after_clip: int, last_clip: int) -> list[CellRow]:
    """Return clips ``after_clip < clip <= last_clip``, in order."""
    rows = session.execute(
        select(ClipRow.clip, ClipRow.start_ms, ClipRow.end_ms)
        .where(
            ClipRow.video_id == video,
            ClipRow.clip > after_clip,
            ClipRow.clip <= last_clip,
        )
        .order_by(ClipRow.clip)
    )
    return [CellRow._make(r) for r in rows]


def segment_revisions(session: Session, video: str) -> Revisions:
    """Return every revision of every segment; views select those that are valid."""
    row = SegmentRevisionRow
    results = session.execute(
        select(
            SegmentRow.id,
            SegmentRow.number,
            row.revision,
            row.label,
            row.summary,
            row.clips,
            row.from_clip,
            row.to_clip,
            _packed(row.embedding),
        )
        .join(row, row.segment_id == SegmentRow.id)
        .where(SegmentRow.video_id == video)
        .order_by(SegmentRow.number, row.revision)
    ).all()
    rows = [SegmentRevision(*r[:5], tuple(r[5]), *r[6:8]) for r in results]
    return Revisions(rows, _vectors(r[-1] for r in results))


_EDGES = (
    select(
        EdgeRow.id,
        EdgeRow.source_id,
        EdgeRow.target_id,
        EdgeRow.relation,
        EdgeRow.explicit,
        EdgeRow.confidence,
        EdgeRow.rationale,
        EdgeRow.evidence,
    )
    .where(
        EdgeRow.video_id == bindparam("video"),
        or_(EdgeRow.source_id == bindparam("segment"), EdgeRow.target_id == bindparam("segment")),
        valid_at(EdgeRow, bindparam("last_clip")),
    )
    .order_by(EdgeRow.id)
)


def edges_of_segment(connection: Connection | Session, scope: Scope, segment: int) -> list[Edge]:
    """Return the edges of a segment that are valid in ``scope``, in both directions."""
    parameters = {"video": scope.video, "segment": segment, "last_clip": scope.last_clip}
    rows = connection.execute(_EDGES, parameters)
    return [
        Edge(
            id=edge.id,
            source=edge.source_id,
            target=edge.target_id,
            relation=Relation(edge.relation),
            explicit=edge.explicit,
            confidence=edge.confidence,
            rationale=edge.rationale,
            evidence=tuple(clip for clip in edge.evidence if clip <= scope.last_clip),
        )
        for edge in rows
    ]


_MENTIONS = (
    select(MemoryLinkRow.memory_id)
    .join(IdentityRow, IdentityRow.id == MemoryLinkRow.identity_id)
    .join(MemoryRow, MemoryRow.id == MemoryLinkRow.memory_id)
    .where(
        IdentityRow.video_id == bindparam("video"),
        MemoryRow.clip <= bindparam("last_clip"),
        func.concat("<", IdentityRow.kind, "_", IdentityRow.number, ">")
        == func.any(bindparam("tags", type_=ARRAY(Text))),
    )
)


def memories_mentioning(
    connection: Connection | Session, scope: Scope, tags: Collection[str]
) -> set[int]:
    """Return the ids of memories in ``scope`` that mention an identity with one of ``tags``."""
    parameters = {"video": scope.video, "last_clip": scope.last_clip, "tags": sorted(tags)}
    return set(connection.execute(_MENTIONS, parameters).scalars())


def cited_memories(session: Session, scope: Scope, ids: Collection[int]) -> list[StoredLine]:
    """Return those of these memories that ``scope`` includes and that are not superseded."""
    row = MemoryRow
    rows = session.execute(
        select(
            row.id,
            row.clip,
            row.start_ms,
            row.end_ms,
            row.kind,
            row.text,
            row.source,
            row.speaker,
            row.superseded_at,
        ).where(
            row.video_id == scope.video,
            row.id.in_(sorted(ids)),
            row.clip <= scope.last_clip,
            or_(row.superseded_at.is_(None), row.superseded_at > scope.last_clip),
        )
    )
    return [StoredLine._make(r) for r in rows]


def cited_segments(
    session: Session, scope: Scope, ids: Collection[int]
) -> list[tuple[int, str, str, int, int]]:
    """Return (id, label, summary, start, end in ms) of those of these segments in ``scope``."""
    row = SegmentRevisionRow
    rows = session.execute(
        select(
            SegmentRow.id,
            row.label,
            row.summary,
            func.min(ClipRow.start_ms),
            func.max(ClipRow.end_ms),
        )
        .join(row, row.segment_id == SegmentRow.id)
        .join(
            ClipRow,
            and_(ClipRow.video_id == SegmentRow.video_id, ClipRow.clip == func.any(row.clips)),
        )
        .where(
            SegmentRow.video_id == scope.video,
            SegmentRow.id.in_(sorted(ids)),
            ClipRow.clip <= scope.last_clip,
            valid_at(row, scope.last_clip),
        )
        .group_by(SegmentRow.id, row.id)
    )
    return [(i, label, summary, start, end) for i, label, summary, start, end in rows]


def cited_frames(session: Session, scope: Scope, ids: Collection[int]) -> list[KeyframeOnClip]:
    """Return those of these keyframes that are in ``scope``."""
    row = KeyframeRow
    rows = session.execute(
        select(*KEYFRAME_COLUMNS).where(
            row.video_id == scope.video,
            row.id.in_(sorted(ids)),
            row.clip <= scope.last_clip,
        )
    )
    return [KeyframeOnClip._make(r) for r in rows]
