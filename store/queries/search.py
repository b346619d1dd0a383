"""Reads of a search besides candidates: edges of segments, and rows that answers cite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Literal
from sqlalchemy import Connection, and_, bindparam, func, or_, select, union_all
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.memories import Edge, Scope, Segment
from domain.time import TimeSpan
from store.queries.clips import KEYFRAMES, KeyframeOnClip
from store.queries.conditions import (
    LINES_IN_VIEW,
    VIEW,
    Reader,
    reading_driver,
    valid_at,
    view_parameters,
)
from store.queries.encoders import vector_literal
from store.queries.events import EDGES
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


_EDGES = EDGES.where(
    EdgeRow.video_id == bindparam("video"),
    or_(EdgeRow.source_id == bindparam("segment"), EdgeRow.target_id == bindparam("segment")),
    valid_at(EdgeRow, bindparam("last_clip")),
)


def edges_of_segment(connection: Connection | Session, scope: Scope, segment: int) -> list[Edge]:
    """Return the edges of a segment that are valid in ``scope``, in both directions."""
    parameters = {"video": scope.video, "segment": segment, "last_clip": scope.last_clip}
    edges = connection.execute(_EDGES, parameters).mappings()
    return [
        Edge(**{**edge, "evidence": [n for n in edge["evidence"] if n <= scope.last_clip]})
        for edge in edges
    ]


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
    row = KeyframeRow
    rows = session.execute(
        KEYFRAMES.where(
            row.video_id == scope.video, row.id.in_(sorted(ids)), row.clip <= scope.last_clip
        )
    )
    return [KeyframeOnClip._make(r) for r in rows]


# Segments in a view, with their cosines to a vector.


@dataclass(frozen=True, eq=False)
class SegmentArrays:
    """S segments in view as arrays, sorted by scope and number.

    ``id`` (S,); ``video`` (S,) numbers the scopes; ``cosine`` (S,) is with the query's vector.
    ``clips`` (K,) are the clips in view of one segment after the other, ``counts`` (S,) how many
    each has.
    """

    id: NDArray[np.int64]
    video: NDArray[np.int64]
    cosine: NDArray[np.float32]
    counts: NDArray[np.int64]
    clips: NDArray[np.int64]


_FIELDS = np.dtype([("id", ">i8"), ("video", ">i8"), ("counts", ">i8"), ("cosine", ">f8")])
_SEGMENTS = """
    WITH {view}
    SELECT string_agg(int8send(id) || int8send(scope) || int8send(cardinality(clips))
                      || float8send(cosine), ''::bytea),
           string_agg(array_to_string(clips, ' '), ' ')
    FROM (
        SELECT s.id, view.number AS scope,
               CASE WHEN view.last_clip >= ALL (r.clips) THEN r.clips
                    ELSE ARRAY(SELECT c FROM unnest(r.clips) AS c WHERE c <= view.last_clip)
               END AS clips,
               coalesce(CASE WHEN vector_dims(r.embedding) = {size} THEN {cosine} END, 0)::float8
                   AS cosine
        FROM view JOIN segments AS s ON s.video_id = view.video
        JOIN segment_revisions AS r ON r.segment_id = s.id AND r.from_clip <= view.last_clip
             AND (r.to_clip IS NULL OR r.to_clip > view.last_clip)
        WHERE cardinality(r.clips) > 0
        ORDER BY view.number, s.number OFFSET 0) AS segment
"""


def segments_in_view(
    database: Reader, scopes: Sequence[Scope], vector: NDArray[np.floating]
) -> SegmentArrays:
    """Return the segments that are valid in the view, with their cosines to a vector.

    Args:
        database: A connection or session.
        vector: The query's unit vector (D,); segments with vectors of another size get 0.
    """
    cosine = SQL("1 - (r.embedding <=> {}::halfvec)").format(Literal(vector_literal(vector)))
    statement = SQL(_SEGMENTS).format(view=SQL(VIEW), cosine=cosine, size=Literal(len(vector)))
    with reading_driver(database).cursor(binary=True) as cursor:
        row = cursor.execute(statement, view_parameters(scopes)).fetchone()
    fields, clips = row or (None, None)
    rows = np.frombuffer(fields or b"", dtype=_FIELDS)
    return SegmentArrays(
        id=rows["id"].astype(np.int64),
        video=rows["video"].astype(np.int64),
        cosine=rows["cosine"].astype(np.float32),
        counts=rows["counts"].astype(np.int64),
        clips=np.fromstring(clips or "", dtype=np.int64, sep=" "),
    )


_SEGMENT_TEXTS = """
    WITH {view}
    SELECT s.id, concat_ws(' ', r.label, r.summary, (
        SELECT string_agg(concat_ws(' ', h->>'label', h->>'summary'), ' ')
        FROM jsonb_array_elements(r.history) AS h))
    FROM view JOIN segments AS s ON s.video_id = view.video
    JOIN segment_revisions AS r ON r.segment_id = s.id
         AND r.from_clip <= view.last_clip AND (r.to_clip IS NULL OR r.to_clip > view.last_clip)
    WHERE s.id = ANY(%(ids)s)
"""


def segment_texts(
    database: Reader, scopes: Sequence[Scope], ids: Collection[int]
) -> dict[int, str]:
    """Return label and summary of those of ``ids`` that are valid in the view, by id.

    Those of the segments that each absorbed follow.
    """
    statement = SQL(_SEGMENT_TEXTS).format(view=SQL(VIEW))
    parameters = view_parameters(scopes) | {"ids": list(ids)}
    return dict(reading_driver(database).execute(statement, parameters).fetchall())


_SEGMENT_ROWS = """
    WITH {view}
    SELECT s.id, s.video_id, s.number, r.label, r.summary, r.revision,
           array_agg(c.clip ORDER BY c.clip), min(c.start_ms), max(c.end_ms)
    FROM view JOIN segments AS s ON s.video_id = view.video
    JOIN segment_revisions AS r ON r.segment_id = s.id
         AND r.from_clip <= view.last_clip AND (r.to_clip IS NULL OR r.to_clip > view.last_clip)
    JOIN clips AS c ON c.video_id = s.video_id AND c.clip = ANY(r.clips)
         AND c.clip <= view.last_clip
    WHERE s.id = ANY(%(ids)s) GROUP BY s.id, r.id
"""


def read_segments(
    database: Reader, scopes: Sequence[Scope], ids: Collection[int]
) -> dict[int, Segment]:
    """Return those of ``ids`` that are valid in the view, with their clips in view, by id."""
    statement = SQL(_SEGMENT_ROWS).format(view=SQL(VIEW))
    parameters = view_parameters(scopes) | {"ids": sorted(ids)}
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    return {
        row[0]: Segment(
            id=row[0],
            video=row[1],
            number=row[2],
            label=row[3],
            summary=row[4],
            revision=row[5],
            clips=tuple(row[6]),
            span=TimeSpan.of(row[7], row[8]),
        )
        for row in rows
    }


# How many clips and lines a view has.

# Measured on a week of 125,000 lines: exact search over all takes 63 ms, through the index 10 with
# a recall of .98; one speaker 59 and 165 with a recall of .71.
WIDE = 20_000
"""Views of more lines are searched through the HNSW index, if there is one; others exactly."""


@dataclass(frozen=True)
class ViewSize:
    """The size of a view: clips, lines counted up to ``WIDE + 1``, first and last time.

    Times are milliseconds of video time.
    """

    clips: int
    lines: int
    start_ms: int
    end_ms: int

    @property
    def wide(self) -> bool:
        """Whether the view is too large for exact search."""
        return self.lines > WIDE


_SIZE = f"""
    WITH {VIEW}
    SELECT (SELECT coalesce(array_agg(video), '{{}}') FROM view
                WHERE NOT EXISTS (SELECT FROM videos AS v WHERE v.id = view.video)),
           (SELECT count(*) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip <= view.last_clip),
           (SELECT count(*) FROM (SELECT FROM view JOIN memories AS m
                ON m.video_id = view.video AND m.clip <= view.last_clip
                LIMIT %(limit)s) AS counted),
           (SELECT coalesce(min(c.start_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = 0),
           (SELECT coalesce(max(c.end_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = view.last_clip)
"""


def view_size(database: Reader, scopes: Sequence[Scope]) -> ViewSize:
    """Count the clips and lines in view; lines only up to ``WIDE + 1``.

    Raises:
        NotFound: A video of the view does not exist.
    """
    parameters = view_parameters(scopes) | {"limit": WIDE + 1}
    row = reading_driver(database).execute(_SIZE, parameters).fetchone()
    missing, clips, lines, start_ms, end_ms = row or ([], 0, 0, 0, 0)
    if missing:
        raise NotFound(f"no video goes by {missing[0]!r}: `homer videos` lists them")
    return ViewSize(clips, lines, start_ms, end_ms)


_COUNT = f"""
    WITH {VIEW} SELECT count(*) FROM (SELECT FROM {LINES_IN_VIEW} LIMIT %(limit)s) AS counted
"""


def count_lines(database: Reader, scopes: Sequence[Scope]) -> int:
    """Count the lines in view, up to ``WIDE + 1``."""
    parameters = view_parameters(scopes) | {"limit": WIDE + 1}
    row = reading_driver(database).execute(_COUNT, parameters).fetchone()
    return int(row[0]) if row else 0


def is_wide(database: Reader, scopes: Sequence[Scope]) -> bool:
    """Check whether a view has more than ``WIDE`` lines."""
    return count_lines(database, scopes) > WIDE
