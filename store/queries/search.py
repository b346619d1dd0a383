"""What searching reads: lines, segments, edges and who is mentioned. Exact, and as of a clip.

Inside a video everything is read in order and scored exactly: an approximate index that is
filtered by video afterwards loses most of what it should find.
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

from domain.events import Edge, Relation
from domain.view import Scope
from store.driver import driver_of
from store.queries.as_of import holds
from store.queries.on_clips import FRAME, KeyframeOnClip
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
    """A memory as searching sees it. ``superseded_at``: the clip after which it is no more so."""

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
    """A clip's place in time."""

    clip: int
    start_ms: int
    end_ms: int


class SegmentRevision(NamedTuple):
    """One revision of a segment, with the clips between which it holds."""

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
    """Rows with their vectors: ``vectors`` has shape (N, D), zeros where a row has none."""

    rows: list[StoredLine]
    vectors: Matrix


@dataclass(frozen=True)
class Revisions:
    """Segment revisions with their vectors, in order of segment number and revision."""

    rows: list[SegmentRevision]
    vectors: Matrix


def _vectors(packed: Iterable[bytes | None]) -> Matrix:
    """Decode what ``halfvec_send`` gives: two 16-bit numbers (size, unused), then halves."""
    sent = list(packed)
    size = next((int.from_bytes(v[:2], "big") for v in sent if v is not None), 0)
    blank = bytes(4 + 2 * size)
    joined = b"".join(blank if v is None else v for v in sent)
    return widened(np.frombuffer(joined, dtype=">u2").reshape(-1, 2 + size)[:, 2:])


_AT_ONCE = 256


def widened(halves: NDArray[np.uint16]) -> Matrix:
    """The numbers of finite 16-bit floats (N, D), given by their bits, in 32 bits.

    By whole-number arithmetic over many: NumPy widens halves one by one, in ten times the time. The
    exponent moves to its place and is off by 112 then, which a product puts right, also for numbers
    too small to be normal (IEEE 754).
    """
    found = np.empty(halves.shape, dtype=np.uint32)
    for start in range(0, len(halves), _AT_ONCE):
        bits, rows = halves[start : start + _AT_ONCE].astype(np.uint32), found[start:]
        size = ((bits & 0x7FFF) << 13).view(np.float32) * np.float32(2.0**112)
        rows[: len(bits)] = size.view(np.uint32) | (bits & 0x8000) << 16
    return found.view(np.float32)


def _packed(column: InstrumentedAttribute[Any]) -> ColumnElement[bytes]:
    return func.halfvec_send(column)


_LINES = """
    SELECT id, clip, start_ms, end_ms, kind, text, source, speaker, superseded_at,
           halfvec_send(embedding)
    FROM memories WHERE video_id = %s AND clip > %s AND clip <= %s ORDER BY clip, start_ms, id
"""


def lines_between(session: Session, video: str, after_clip: int, last_clip: int) -> Lines:
    """The memories of clips ``after_clip < clip <= last_clip``, by clip, time and id.

    By the driver itself and in binary, since there may be very many.
    """
    with driver_of(session.connection()).cursor(binary=True) as cursor:
        found = cursor.execute(_LINES, (video, after_clip, last_clip)).fetchall()
    return Lines([StoredLine._make(r[:-1]) for r in found], _vectors(r[-1] for r in found))


def vectors_of(connection: Connection, ids: Sequence[int]) -> tuple[NDArray[np.int64], Matrix]:
    """Which of these memories (K,) there are that have a vector, in no order, and the vectors."""
    query = """SELECT id, halfvec_send(embedding) FROM memories
               WHERE id = ANY(%s) AND embedding IS NOT NULL"""
    with driver_of(connection).cursor(binary=True) as cursor:
        found = cursor.execute(query, (list(ids),)).fetchall()
    return np.array([row[0] for row in found], np.int64), _vectors(row[1] for row in found)


def superseded(session: Session, video: str) -> dict[int, int]:
    """Which memories were superseded, and after which clip."""
    found = session.execute(
        select(MemoryRow.id, MemoryRow.superseded_at).where(
            MemoryRow.video_id == video, MemoryRow.superseded_at.is_not(None)
        )
    )
    return {memory: clip for memory, clip in found if clip is not None}


def cells_between(session: Session, video: str, after_clip: int, last_clip: int) -> list[CellRow]:
    """Clips ``after_clip < clip <= last_clip``, in order."""
    found = session.execute(
        select(ClipRow.clip, ClipRow.start_ms, ClipRow.end_ms)
        .where(
            ClipRow.video_id == video,
            ClipRow.clip > after_clip,
            ClipRow.clip <= last_clip,
        )
        .order_by(ClipRow.clip)
    )
    return [CellRow._make(r) for r in found]


def revisions(session: Session, video: str) -> Revisions:
    """Every revision of every segment; which of them hold is for the view to say."""
    row = SegmentRevisionRow
    found = session.execute(
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
    rows = [SegmentRevision(*r[:5], tuple(r[5]), *r[6:8]) for r in found]
    return Revisions(rows, _vectors(r[-1] for r in found))


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
        holds(EdgeRow, bindparam("last_clip")),
    )
    .order_by(EdgeRow.id)
)


def edges_at(connection: Connection | Session, scope: Scope, segment: int) -> list[Edge]:
    """The edges of a segment that hold in ``scope``, in both directions."""
    sought = {"video": scope.video, "segment": segment, "last_clip": scope.last_clip}
    found = connection.execute(_EDGES, sought)
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
        for edge in found
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


def mentions(connection: Connection | Session, scope: Scope, tags: Collection[str]) -> set[int]:
    """Ids of the memories in ``scope`` that mention an identity with one of ``tags``."""
    sought = {"video": scope.video, "last_clip": scope.last_clip, "tags": sorted(tags)}
    return set(connection.execute(_MENTIONS, sought).scalars())


def cited_memories(session: Session, scope: Scope, ids: Collection[int]) -> list[StoredLine]:
    """Those of these memories that ``scope`` sees; superseded ones are not in force."""
    row = MemoryRow
    found = session.execute(
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
    return [StoredLine._make(r) for r in found]


def cited_segments(
    session: Session, scope: Scope, ids: Collection[int]
) -> list[tuple[int, str, str, int, int]]:
    """(id, label, summary, start, end in ms) of those of these segments that ``scope`` sees."""
    row = SegmentRevisionRow
    found = session.execute(
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
            holds(row, scope.last_clip),
        )
        .group_by(SegmentRow.id, row.id)
    )
    return [(i, label, summary, start, end) for i, label, summary, start, end in found]


def cited_frames(session: Session, scope: Scope, ids: Collection[int]) -> list[KeyframeOnClip]:
    """Those of these keyframes that ``scope`` sees."""
    row = KeyframeRow
    found = session.execute(
        select(*FRAME).where(
            row.video_id == scope.video,
            row.id.in_(sorted(ids)),
            row.clip <= scope.last_clip,
        )
    )
    return [KeyframeOnClip._make(r) for r in found]
