"""Reads of a search besides candidates: edges of segments, and rows that answers cite."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from domain.memories import Edge, Relation, Scope
from store.queries.clip_contents import KEYFRAME_COLUMNS, KeyframeOnClip
from store.queries.conditions import valid_at
from store.tables.schema import (
    ClipRow,
    EdgeRow,
    EntityRow,
    FrameRow,
    KeyframeRow,
    MemoryRow,
    NodeRow,
    RelationRow,
    SegmentRevisionRow,
    SegmentRow,
)


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


LINE_COLUMNS = (
    MemoryRow.id,
    MemoryRow.clip,
    MemoryRow.start_ms,
    MemoryRow.end_ms,
    MemoryRow.kind,
    MemoryRow.text,
    MemoryRow.source,
    MemoryRow.speaker,
    MemoryRow.superseded_at,
)
"""The columns of a ``StoredLine``."""


_ROWS: Mapping[str, Any] = {
    "m": MemoryRow,
    "s": SegmentRow,
    "k": KeyframeRow,
    "f": FrameRow,
    "n": NodeRow,
    "e": EntityRow,
    "r": RelationRow,
}
"""The rows that refs of each of ``REF_KINDS`` name."""


def videos_of_refs(session: Session, ids: Mapping[str, Collection[int]]) -> set[str]:
    """Return the videos that have the rows of these refs, by kind."""
    named = [
        select(row.video_id).where(row.id.in_(sorted(ids[kind])))
        for kind, row in _ROWS.items()
        if ids.get(kind)
    ]
    return set(session.scalars(union_all(*named))) if named else set()


def cited_memories(session: Session, scope: Scope, ids: Collection[int]) -> list[StoredLine]:
    """Return those of ``ids`` that are in ``scope`` and not superseded there."""
    row = MemoryRow
    rows = session.execute(
        select(*LINE_COLUMNS).where(
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
    """Return (id, label, summary, start, end in ms) of those of ``ids`` in ``scope``."""
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
    """Return those of ``ids`` that are in ``scope``."""
    row = KeyframeRow
    rows = session.execute(
        select(*KEYFRAME_COLUMNS).where(
            row.video_id == scope.video,
            row.id.in_(sorted(ids)),
            row.clip <= scope.last_clip,
        )
    )
    return [KeyframeOnClip._make(r) for r in rows]
