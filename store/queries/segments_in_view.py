"""Segments in a view, with their cosines to a vector."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL

from domain.memories import Scope, Segment
from domain.time import TimeSpan
from store.queries.encoders import QueryParts, cosine_of
from store.queries.view_conditions import VIEW, Reader, reading_driver, view_parameters


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
               coalesce({cosine}, 0)::float8 AS cosine
        FROM view JOIN segments AS s ON s.video_id = view.video
        JOIN segment_revisions AS r ON r.segment_id = s.id AND r.from_clip <= view.last_clip
             AND (r.to_clip IS NULL OR r.to_clip > view.last_clip)
        WHERE cardinality(r.clips) > 0
        ORDER BY view.number, s.number OFFSET 0) AS segment
"""


def segments_in_view(
    database: Reader,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    parts: QueryParts | None = None,
) -> SegmentArrays:
    """Return the segments that are valid in the view, with their cosines to a vector.

    Args:
        database: A connection or session.
        vector: The query's unit vector (D,); segments with vectors of another size get 0.
        parts: The encoders that its numbers are of; None: one.
    """
    cosine = cosine_of(vector, parts, "r.encoder", "r.embedding")
    statement = SQL(_SEGMENTS).format(view=SQL(VIEW), cosine=cosine)
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
