"""The statements of a search: which clips are near a vector or hold a word, and their lines.

A view is a list of videos, each up to a clip. Every statement takes it as two arrays
(``%(videos)s`` and ``%(last_clips)s``), so that it sees no line of a later clip and none that is
superseded in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.sql import SQL, Composed, Identifier, Literal
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.memories import Scope, Segment
from domain.time import TimeSpan
from store.driver import driver_of
from store.queries.search import StoredLine

Matrix = NDArray[np.float32]
Reader = Connection | Session
"""What reads: a connection, or a session in its transaction."""


def _driver(database: Reader) -> psycopg.Connection[Any]:
    return driver_of(database.connection() if isinstance(database, Session) else database)


WIDE = 20_000
"""Views of more lines are searched through the HNSW index, if there is one; others exactly."""
EF_SEARCH = 200
"""Lines that an HNSW scan keeps in mind (pgvector's ``hnsw.ef_search``), at least as many as it
returns."""


class NearClip(NamedTuple):
    """A clip that is near a query vector: number of the vector, of the video, clip, distance."""

    query: int
    video: int
    clip: int
    distance: float


@dataclass(frozen=True)
class ViewSize:
    """How much a view holds: clips, lines counted up to ``WIDE + 1``, first and last time.

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


@dataclass(frozen=True)
class Restriction:
    """What the lines of a meaning search are restricted to, besides the view.

    ``span_ms`` is a half-open interval of video time, ``identities`` are rows of ``identities``
    that a line mentions, ``speaker`` is who says it.
    """

    span_ms: tuple[int, int] | None = None
    identities: tuple[int, ...] = ()
    speaker: str | None = None

    @property
    def selective(self) -> bool:
        """Whether few lines are left, so that an approximate index would miss them."""
        return self != Restriction()


EVERYTHING = Restriction()

_IN_VIEW = """
    m.clip <= (%(last_clips)s::int[])[array_position(%(videos)s::text[], m.video_id)]
    AND (m.superseded_at IS NULL OR m.superseded_at >
         (%(last_clips)s::int[])[array_position(%(videos)s::text[], m.video_id)])
"""
"""The condition that a line is in view, evaluated line by line as an index scan goes on."""

_VIEW = """
    view AS MATERIALIZED (
        SELECT video, last_clip, (n - 1)::int AS n
        FROM unnest(%(videos)s::text[], %(last_clips)s::int[])
             WITH ORDINALITY AS one (video, last_clip, n))
"""
_LINES_IN_VIEW = """
    view JOIN memories AS m ON m.video_id = view.video AND m.clip <= view.last_clip
         AND (m.superseded_at IS NULL OR m.superseded_at > view.last_clip)
"""


def _view_parameters(scopes: Sequence[Scope]) -> dict[str, Any]:
    return {
        "videos": [scope.video for scope in scopes],
        "last_clips": [scope.last_clip for scope in scopes],
    }


_SIZE = f"""
    WITH {_VIEW}
    SELECT (SELECT coalesce(array_agg(video), '{{}}') FROM view
                WHERE NOT EXISTS (SELECT FROM videos AS v WHERE v.id = view.video)),
           (SELECT count(*) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip <= view.last_clip),
           (SELECT count(*) FROM (SELECT FROM view JOIN memories AS m
                ON m.video_id = view.video AND m.clip <= view.last_clip LIMIT %(limit)s) AS few),
           (SELECT coalesce(min(c.start_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = 0),
           (SELECT coalesce(max(c.end_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = view.last_clip)
"""  # noqa: S608


def view_size(database: Reader, scopes: Sequence[Scope]) -> ViewSize:
    """Count what is in view; lines no further than it takes to know that there are many.

    Raises:
        NotFound: A video of the view is not there.
    """
    parameters = _view_parameters(scopes) | {"limit": WIDE + 1}
    row = _driver(database).execute(_SIZE, parameters).fetchone()
    missing, *counts = row or ([], 0, 0, 0, 0)
    if missing:
        raise NotFound(f"no video goes by {missing[0]!r}: `homer videos` lists them")
    return ViewSize(*counts)


_NEAR_EXACT = """
    WITH {view}, query AS MATERIALIZED (
        SELECT (n - 1)::int AS n, vector::halfvec AS vector
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS one (vector, n))
    SELECT query.n, near.n, near.clip, near.distance FROM query CROSS JOIN LATERAL (
        SELECT line.n, line.clip, min(line.distance) AS distance FROM (
            SELECT view.n, m.clip, m.embedding <=> query.vector AS distance
            FROM {lines}
            WHERE vector_dims(m.embedding) = {size} {restriction}
            OFFSET 0) AS line  -- Distances, not vectors, are what is sorted and grouped.
        GROUP BY line.n, line.clip ORDER BY distance, line.n, line.clip LIMIT %(limit)s) AS near
"""
_NEAR_BY_INDEX = """
    WITH {view}, query AS MATERIALIZED (
        SELECT (n - 1)::int AS n, vector::halfvec AS vector
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS one (vector, n))
    SELECT query.n, view.n, near.clip, min(near.distance)
    FROM query CROSS JOIN LATERAL (
        SELECT m.video_id, m.clip, m.embedding::halfvec({size}) <=> query.vector AS distance
        FROM memories AS m
        WHERE vector_dims(m.embedding) = {size} AND {in_view}
        ORDER BY m.embedding::halfvec({size}) <=> query.vector LIMIT %(limit)s) AS near
    JOIN view ON view.video = near.video_id GROUP BY query.n, view.n, near.clip
"""


def near_clips(
    database: Reader,
    scopes: Sequence[Scope],
    vectors: Matrix,
    limit: int,
    restriction: Restriction = EVERYTHING,
    *,
    by_index: bool = False,
) -> list[NearClip]:
    """Return for each vector the clips whose closest line is nearest, by cosine distance.

    Args:
        database: A connection or session.
        scopes: The view.
        vectors: Q unit vectors (Q, D). Lines embedded in another size are left out.
        limit: Clips for each vector; through the index, lines for each vector.
        restriction: What else the lines must fulfil.
        by_index: Whether to scan the HNSW index (approximate) or all lines in view (exact).
    """
    if not len(vectors) or not scopes:
        return []
    template = _NEAR_BY_INDEX if by_index else _NEAR_EXACT
    statement = _near_statement(template, vectors.shape[1], restriction)
    parameters = _near_parameters(scopes, limit, restriction) | {
        "vectors": [as_text(vector) for vector in vectors]
    }
    rows = _near(_driver(database), statement, parameters, by_index=by_index)
    return [NearClip._make(row) for row in rows]


class ScoredLine(NamedTuple):
    """A line with its cosine distance to a vector."""

    id: int
    video: str
    distance: float


_LINES_EXACT = """
    WITH {view}, query AS MATERIALIZED (SELECT %(vector)s::halfvec AS vector)
    SELECT line.id, line.video_id, line.distance FROM (
        SELECT m.id, m.video_id, m.embedding <=> query.vector AS distance
        FROM query, {lines}
        WHERE vector_dims(m.embedding) = {size} {restriction}
        OFFSET 0) AS line
    ORDER BY line.distance, line.id LIMIT %(limit)s
"""
_LINES_BY_INDEX = """
    SELECT m.id, m.video_id, m.embedding::halfvec({size}) <=> %(vector)s::halfvec AS distance
    FROM memories AS m
    WHERE vector_dims(m.embedding) = {size} AND {in_view}
    ORDER BY m.embedding::halfvec({size}) <=> %(vector)s::halfvec LIMIT %(limit)s
"""


def near_lines(
    database: Reader,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
    restriction: Restriction = EVERYTHING,
) -> list[ScoredLine]:
    """Return the lines nearest to a unit vector (D,), nearest first.

    Through the index where the view is wide, there is one, and nothing else narrows it.
    """
    wide = not restriction.selective and view_size(database, scopes).wide
    by_index = wide and has_index(database, len(vector))
    template = _LINES_BY_INDEX if by_index else _LINES_EXACT
    parameters = _near_parameters(scopes, limit, restriction) | {"vector": as_text(vector)}
    statement = _near_statement(template, len(vector), restriction)
    rows = _near(_driver(database), statement, parameters, by_index=by_index)
    return sorted(map(ScoredLine._make, rows), key=lambda one: (one.distance, one.id))


def _near_parameters(
    scopes: Sequence[Scope], limit: int, restriction: Restriction
) -> dict[str, Any]:
    return _view_parameters(scopes) | {
        "limit": limit,
        "identities": list(restriction.identities),
        "speaker": restriction.speaker,
        "start_ms": restriction.span_ms[0] if restriction.span_ms else None,
        "end_ms": restriction.span_ms[1] if restriction.span_ms else None,
    }


_INDEX_SCAN = """
    SELECT set_config('hnsw.ef_search', %s, true),
           set_config('hnsw.iterative_scan', 'relaxed_order', true)
"""


def _near(
    driver: psycopg.Connection[Any],
    statement: Composed,
    parameters: Mapping[str, Any],
    *,
    by_index: bool,
) -> list[tuple[Any, ...]]:
    """Run a search by meaning; index scans go on until enough lines fulfil the conditions."""
    with driver.transaction():
        if by_index:
            driver.execute(_INDEX_SCAN, (str(max(EF_SEARCH, parameters["limit"])),))
        return driver.execute(statement, parameters, prepare=False).fetchall()


def _near_statement(template: LiteralString, size: int, restriction: Restriction) -> Composed:
    return SQL(template).format(
        view=SQL(_VIEW),
        lines=SQL(_LINES_IN_VIEW),
        in_view=SQL(_IN_VIEW),
        size=Literal(size),
        restriction=SQL(_restriction(restriction)),
    )


def _restriction(restriction: Restriction) -> LiteralString:
    conditions: list[LiteralString] = []
    if restriction.span_ms:
        conditions.append("AND m.end_ms > %(start_ms)s AND m.start_ms < %(end_ms)s")
    if restriction.identities:
        conditions.append(
            "AND EXISTS (SELECT FROM memory_links AS l WHERE l.memory_id = m.id"
            " AND l.identity_id = ANY(%(identities)s))"
        )
    if restriction.speaker is not None:
        conditions.append("AND m.speaker = %(speaker)s")
    return " ".join(conditions)


def as_text(vector: NDArray[np.floating]) -> str:
    """Write a vector (D,) as pgvector reads it."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


_WORDS = f"""
    WITH {_VIEW}, word AS MATERIALIZED (
        SELECT (n - 1)::int AS n, phraseto_tsquery('english', text) AS query
        FROM unnest(%(words)s::text[]) WITH ORDINALITY AS one (text, n))
    SELECT held.word, string_agg(int8send(held.video) || int8send(held.clip)
                                 || int8send(held.lines), ''::bytea)
    FROM (SELECT word.n AS word, view.n AS video, m.clip, count(*) AS lines
          FROM word JOIN memories AS m ON m.words @@ word.query
          JOIN view ON view.video = m.video_id AND m.clip <= view.last_clip
               AND (m.superseded_at IS NULL OR m.superseded_at > view.last_clip)
          GROUP BY word.n, view.n, m.clip) AS held
    GROUP BY held.word
"""  # noqa: S608


def clips_with_words(
    database: Reader, scopes: Sequence[Scope], words: Sequence[str]
) -> dict[int, NDArray[np.int64]]:
    """Return the clips in view that hold words or phrases, in any inflection.

    Returns:
        By the number of each word that any clip holds, (K, 3): the number of the video, the clip,
        and how many of its lines hold the word.
    """
    if not words or not scopes:
        return {}
    parameters = _view_parameters(scopes) | {"words": list(words)}
    with _driver(database).cursor(binary=True) as cursor:
        rows = cursor.execute(_WORDS, parameters, prepare=False).fetchall()
    return {
        word: np.frombuffer(data, dtype=">i8").reshape(-1, 3).astype(np.int64)
        for word, data in rows
    }


@dataclass(frozen=True, eq=False)
class LineArrays:
    """M lines as arrays, by video of the view, clip, time and id; ``vectors`` is (M, D).

    ``video`` (M,) numbers the scopes; times are milliseconds of video time, ``clip_start_ms`` and
    ``clip_end_ms`` those of the line's clip.
    """

    video: NDArray[np.int64]
    id: NDArray[np.int64]
    clip: NDArray[np.int64]
    start_ms: NDArray[np.int64]
    end_ms: NDArray[np.int64]
    clip_start_ms: NDArray[np.int64]
    clip_end_ms: NDArray[np.int64]
    vectors: Matrix


_NUMBERS = ("video", "id", "clip", "start_ms", "end_ms", "clip_start_ms", "clip_end_ms")
# All rows in one value: taking thousands of rows one by one costs more than reading them.
_LINES_OF_CLIPS = """
    WITH {view}, wanted AS MATERIALIZED (
        SELECT DISTINCT video, clip
        FROM unnest(%(video_numbers)s::int[], %(clips)s::int[]) AS one (video, clip))
    SELECT string_agg(bytes, ''::bytea) FROM (
        SELECT int8send(view.n) || int8send(m.id) || int8send(m.clip)
            || int8send(m.start_ms) || int8send(m.end_ms)
            || int8send(c.start_ms) || int8send(c.end_ms) || halfvec_send(m.embedding) AS bytes
        FROM wanted JOIN view ON view.n = wanted.video AND wanted.clip <= view.last_clip
        JOIN memories AS m ON m.video_id = view.video AND m.clip = wanted.clip
             AND (m.superseded_at IS NULL OR m.superseded_at > view.last_clip)
        JOIN clips AS c ON c.video_id = view.video AND c.clip = wanted.clip
        WHERE vector_dims(m.embedding) = {size}
        ORDER BY view.n, m.clip, m.start_ms, m.id OFFSET 0) AS line
"""


def lines_of_clips(
    database: Reader, scopes: Sequence[Scope], clips: Iterable[tuple[int, int]], size: int
) -> LineArrays:
    """Return the lines of some clips with their vectors of ``size`` numbers.

    Args:
        database: A connection or session.
        scopes: The view.
        clips: (number of the scope, clip) pairs.
        size: D. Lines embedded in another size are left out.
    """
    pairs = sorted(set(clips))
    statement = SQL(_LINES_OF_CLIPS).format(view=SQL(_VIEW), size=Literal(size))
    parameters = _view_parameters(scopes) | {
        "video_numbers": [video for video, _ in pairs],
        "clips": [clip for _, clip in pairs],
    }
    with _driver(database).cursor(binary=True) as cursor:
        row = cursor.execute(statement, parameters, prepare=False).fetchone()
    return _line_arrays((row and row[0]) or b"", size)


def _line_arrays(data: bytes, size: int) -> LineArrays:
    """Read rows of equal length: numbers of eight bytes, then a vector after its header."""
    fields: list[Any] = [(name, ">i8") for name in _NUMBERS]
    rows = np.frombuffer(data, dtype=[*fields, ("header", ">i4"), ("vector", ">f2", (size,))])
    numbers = {name: rows[name].astype(np.int64) for name in _NUMBERS}
    return LineArrays(**numbers, vectors=rows["vector"].astype(np.float32))


_SPEAKERS = f"""
    WITH {_VIEW}
    SELECT m.speaker, count(*)::int FROM view
    JOIN memories AS m ON m.video_id = view.video AND m.clip <= view.last_clip
    WHERE m.speaker IS NOT NULL GROUP BY m.speaker
"""  # noqa: S608


def speakers_in_view(database: Reader, scopes: Sequence[Scope]) -> dict[str, int]:
    """Return how many lines each speaker says in view."""
    rows = _driver(database).execute(_SPEAKERS, _view_parameters(scopes)).fetchall()
    return dict(rows)


_SPEAKING = f"""
    WITH {_VIEW}
    SELECT name FROM unnest(%(names)s::text[]) AS one (name) WHERE EXISTS (
        SELECT FROM {_LINES_IN_VIEW} WHERE m.speaker = name)
"""  # noqa: S608


def who_speaks(database: Reader, scopes: Sequence[Scope], names: Sequence[str]) -> set[str]:
    """Return those of some names that somebody speaks under in view."""
    parameters = _view_parameters(scopes) | {"names": list(names)}
    rows = _driver(database).execute(_SPEAKING, parameters).fetchall()
    return {name for (name,) in rows}


class NearLine(NamedTuple):
    """A line near a vector: its id, number of its video, its clip."""

    id: int
    video: int
    clip: int


_MENTIONS = """
    WITH {view}
    SELECT DISTINCT m.id, view.n, m.clip, m.embedding <=> %(vector)s::halfvec AS distance
    FROM {lines}
    JOIN memory_links AS l ON l.memory_id = m.id
    JOIN identities AS i ON i.id = l.identity_id
    WHERE vector_dims(m.embedding) = {size}
      AND (view.video, concat('<', i.kind, '_', i.number, '>')) IN (
          SELECT * FROM unnest(%(tag_videos)s::text[], %(tags)s::text[]))
      {clips}
    ORDER BY distance, m.id LIMIT %(limit)s
"""


def lines_mentioning(
    database: Reader,
    scopes: Sequence[Scope],
    tags: Mapping[str, Collection[str]],
    vector: NDArray[np.floating],
    limit: int,
    clips: Collection[int] | None = None,
) -> list[NearLine]:
    """Return the lines that mention an identity with one of these tags, nearest first.

    Args:
        database: A connection or session.
        scopes: The view.
        tags: Tags such as ``<face_3>``, by video.
        vector: What they are to be near, (D,).
        limit: Most lines.
        clips: Clips that they must be in; None: anywhere in view.
    """
    pairs = [(video, tag) for video, own in tags.items() for tag in sorted(own)]
    statement = SQL(_MENTIONS).format(
        view=SQL(_VIEW),
        lines=SQL(_LINES_IN_VIEW),
        size=Literal(len(vector)),
        clips=SQL("" if clips is None else "AND m.clip = ANY(%(clips)s)"),
    )
    parameters = _view_parameters(scopes) | {
        "vector": as_text(vector),
        "tag_videos": [video for video, _ in pairs],
        "tags": [tag for _, tag in pairs],
        "limit": limit,
        "clips": sorted(clips or ()),
    }
    rows = _driver(database).execute(statement, parameters).fetchall()
    return [NearLine._make(row[:3]) for row in rows]


class SegmentNear(NamedTuple):
    """A segment in view: id, number of its video, its clips in view, cosine with the query."""

    id: int
    video: int
    clips: Sequence[int]
    cosine: float


_SEGMENTS = """
    WITH {view}
    SELECT s.id, view.n,
           CASE WHEN view.last_clip >= ALL (r.clips) THEN r.clips
                ELSE ARRAY(SELECT c FROM unnest(r.clips) AS c WHERE c <= view.last_clip) END,
           CASE WHEN vector_dims(r.embedding) = {size}
                THEN 1 - (r.embedding <=> %(vector)s::halfvec) ELSE 0 END
    FROM view JOIN segments AS s ON s.video_id = view.video
    JOIN segment_revisions AS r ON r.segment_id = s.id
         AND r.from_clip <= view.last_clip AND (r.to_clip IS NULL OR r.to_clip > view.last_clip)
    WHERE cardinality(r.clips) > 0
    ORDER BY view.n, s.number
"""


def segments_in_view(
    database: Reader, scopes: Sequence[Scope], vector: NDArray[np.floating]
) -> list[SegmentNear]:
    """Return the segments that hold in view, by video and number, with cosines to ``vector``."""
    statement = SQL(_SEGMENTS).format(view=SQL(_VIEW), size=Literal(len(vector)))
    parameters = _view_parameters(scopes) | {"vector": as_text(vector)}
    rows = _driver(database).execute(statement, parameters).fetchall()
    return [
        SegmentNear(one, video, clips, float(cosine or 0)) for one, video, clips, cosine in rows
    ]


_NAMING = """
    SELECT c.video_id FROM characters AS c JOIN character_names AS n ON n.character_id = c.id
    WHERE c.video_id = ANY(%(videos)s) AND lower(n.name) LIKE ANY(%(patterns)s)
    UNION
    SELECT video_id FROM corrections
    WHERE video_id = ANY(%(videos)s) AND lower(outcomes::text) LIKE ANY(%(patterns)s)
"""


def videos_naming(database: Reader, scopes: Sequence[Scope], words: Iterable[str]) -> set[str]:
    """Return the videos of a view in which somebody has, or had, a name with one of these words.

    Args:
        database: A connection or session.
        scopes: The view.
        words: Words of letters and digits in lower case.
    """
    patterns = [f"%{word}%" for word in words]
    parameters = {"videos": [scope.video for scope in scopes], "patterns": patterns}
    rows = _driver(database).execute(_NAMING, parameters).fetchall()
    return {video for (video,) in rows}


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
    """Return those of these segments that hold in view, with their clips in view, by id."""
    statement = SQL(_SEGMENT_ROWS).format(view=SQL(_VIEW))
    parameters = _view_parameters(scopes) | {"ids": sorted(ids)}
    rows = _driver(database).execute(statement, parameters).fetchall()
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


_STORED = """
    SELECT id, clip, start_ms, end_ms, kind, text, source, speaker, superseded_at
    FROM memories WHERE id = ANY(%s)
"""


def read_lines(connection: Reader, ids: Collection[int]) -> dict[int, StoredLine]:
    """Return stored lines by id."""
    rows = _driver(connection).execute(_STORED, (sorted(ids),)).fetchall()
    return {row[0]: StoredLine._make(row) for row in rows}


def index_name(size: int) -> str:
    """Return the name of the HNSW index of vectors of ``size`` numbers."""
    return f"memories_meaning_{size}"


def has_index(database: Reader, size: int) -> bool:
    """Check whether the HNSW index of vectors of this size is there and complete."""
    row = (
        _driver(database)
        .execute(
            "SELECT i.indisvalid FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid"
            " WHERE c.relname = %s",
            (index_name(size),),
        )
        .fetchone()
    )
    return bool(row and row[0])


def index_statement(size: int) -> Composed:
    """Return the statement that builds the HNSW index of vectors of ``size`` numbers.

    The column holds vectors of any size, so the index is on a cast, and partial.
    """
    return SQL(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON memories"
        " USING hnsw ((embedding::halfvec({size})) halfvec_cosine_ops)"
        " WHERE vector_dims(embedding) = {size}"
    ).format(name=Identifier(index_name(size)), size=Literal(size))
