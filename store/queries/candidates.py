"""The statements of a search: clips by vector and by word, lines of clips, and likely videos."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.sql import SQL, Composed, Literal, Placeholder

from domain.memories import Scope
from store.queries.conditions import (
    IN_VIEW,
    LINES_IN_VIEW,
    VIEW,
    Reader,
    last_clip_of,
    reading_driver,
    view_parameters,
)
from store.queries.encoders import vector_literal
from store.queries.search import StoredLine, is_wide
from store.vector_index import has_index

# The statements of a search: clips by vector distance, clips by word, and the lines of clips.
#
# Every statement takes a view (``store.queries.conditions``), so that it reads no line of a
# later clip and none that is superseded there.

Matrix = NDArray[np.float32]
EF_SEARCH = 200
"""Size of the candidate list of an HNSW scan (pgvector's ``hnsw.ef_search``): at least as many
lines as it returns."""


class NearClip(NamedTuple):
    """A clip near a query vector: number of the vector, number of the scope, clip, distance."""

    query: int
    video: int
    clip: int
    distance: float


@dataclass(frozen=True)
class Restriction:
    """A filter on the lines of a vector search, besides the view.

    ``span_ms`` is a half-open interval of video time, ``identities`` are rows of ``identities``
    that a line mentions, ``speaker`` is the speaker of a line.
    """

    span_ms: tuple[int, int] | None = None
    identities: tuple[int, ...] = ()
    speaker: str | None = None

    @property
    def selective(self) -> bool:
        """Whether few lines are left, so that an approximate index would miss them."""
        return self != Restriction()


EVERYTHING = Restriction()
"""The filter that every line passes."""

_CLIPS_EXACT = """
    WITH {view}, query AS MATERIALIZED (
        SELECT (ordinality - 1)::int AS number, vector::halfvec AS vector
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given (vector, ordinality))
    SELECT query.number, near.scope, near.clip, near.distance FROM query CROSS JOIN LATERAL (
        SELECT line.scope, line.clip, min(line.distance) AS distance FROM (
            SELECT view.number AS scope, m.clip, m.embedding <=> query.vector AS distance
            FROM {lines}
            WHERE vector_dims(m.embedding) = {size} {restriction}
            OFFSET 0) AS line  -- OFFSET 0: the rows that are grouped hold distances, not vectors.
        GROUP BY line.scope, line.clip ORDER BY distance, line.scope, line.clip
        LIMIT %(limit)s) AS near
"""
_CLIPS_BY_INDEX = """
    WITH query AS MATERIALIZED (
        SELECT (ordinality - 1)::int AS number, vector::halfvec AS vector
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given (vector, ordinality))
    SELECT query.number, near.video_id, near.clip, min(near.distance)
    FROM query CROSS JOIN LATERAL (
        SELECT m.video_id, m.clip, m.embedding::halfvec({size}) <=> query.vector AS distance
        FROM memories AS m
        WHERE vector_dims(m.embedding) = {size} AND {in_view}
        ORDER BY m.embedding::halfvec({size}) <=> query.vector LIMIT %(limit)s) AS near
    GROUP BY query.number, near.video_id, near.clip
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
    """Return the nearest clips of each vector; a clip is as near as its nearest line.

    Distances are 1 - cosine.

    Args:
        database: A connection or session.
        vectors: Q unit vectors (Q, D). Lines embedded in another size are left out.
        limit: Clips for each vector; through the index, lines for each vector.
        restriction: A filter on the lines.
        by_index: Whether to scan the HNSW index (approximate) or all lines in view (exact).
    """
    if not len(vectors) or not scopes:
        return []
    template = _CLIPS_BY_INDEX if by_index else _CLIPS_EXACT
    statement = _vector_statement(template, vectors.shape[1], restriction)
    view = _view_of_search(scopes, by_index=by_index)
    parameters = (
        view
        | _vector_parameters(limit, restriction)
        | {"vectors": [vector_literal(vector) for vector in vectors]}
    )
    rows = _run_vector_search(reading_driver(database), statement, parameters, by_index=by_index)
    if not by_index:
        return [NearClip._make(row) for row in rows]
    found = {video for _, video, *_ in rows}
    numbers = {scope.video: n for n, scope in enumerate(scopes) if scope.video in found}
    return [NearClip._make((query, numbers[video], *rest)) for query, video, *rest in rows]


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

    The HNSW index is used if it exists, the view is wide and ``restriction`` is empty. Lines with a
    vector of another size are left out.
    """
    wide = not restriction.selective and is_wide(database, scopes)
    by_index = wide and has_index(database, len(vector))
    template = _LINES_BY_INDEX if by_index else _LINES_EXACT
    view = _view_of_search(scopes, by_index=by_index)
    parameters = view | _vector_parameters(limit, restriction) | {"vector": vector_literal(vector)}
    statement = _vector_statement(template, len(vector), restriction)
    rows = _run_vector_search(reading_driver(database), statement, parameters, by_index=by_index)
    return sorted(map(ScoredLine._make, rows), key=lambda line: (line.distance, line.id))


def _view_of_search(scopes: Sequence[Scope], *, by_index: bool) -> dict[str, Any]:
    """Return the view as a scan of the index takes it, or an exact search."""
    return {"last_clip_of": last_clip_of(scopes)} if by_index else view_parameters(scopes)


def _vector_parameters(limit: int, restriction: Restriction) -> dict[str, Any]:
    return {
        "limit": limit,
        "identities": list(restriction.identities),
        "speaker": restriction.speaker,
        "start_ms": restriction.span_ms[0] if restriction.span_ms else None,
        "end_ms": restriction.span_ms[1] if restriction.span_ms else None,
    }


_SET_INDEX_SCAN = """
    SELECT set_config('hnsw.ef_search', %s, true),
           set_config('hnsw.iterative_scan', 'relaxed_order', true)
"""


def _run_vector_search(
    driver: psycopg.Connection[Any],
    statement: Composed,
    parameters: Mapping[str, Any],
    *,
    by_index: bool,
) -> list[tuple[Any, ...]]:
    """Run a vector search; an index scan continues until ``limit`` lines pass the conditions."""
    if not by_index:
        # A transaction would cost two more round trips.
        return driver.execute(statement, parameters, prepare=False).fetchall()
    with driver.transaction():
        driver.execute(_SET_INDEX_SCAN, (str(max(EF_SEARCH, parameters["limit"])),))
        return driver.execute(statement, parameters, prepare=False).fetchall()


def _vector_statement(template: LiteralString, size: int, restriction: Restriction) -> Composed:
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
    return SQL(template).format(
        view=SQL(VIEW),
        lines=SQL(LINES_IN_VIEW),
        in_view=SQL(IN_VIEW),
        size=Literal(size),
        restriction=SQL(" ".join(conditions)),
    )


# One scan for all words: the planner combines the index of words with that of videos where that
# leaves fewer lines. OFFSET 0: only then is each word looked for.
_WORDS = """
    WITH {view}, sought (number, query) AS MATERIALIZED (VALUES {sought})
    SELECT sought.number, string_agg(int8send(m.number::bigint << 32 | m.clip), ''::bytea)
    FROM (SELECT view.number, m.clip, m.words FROM {lines} WHERE m.words @@ ({any_word})
          OFFSET 0) AS m
    JOIN sought ON m.words @@ sought.query
    GROUP BY sought.number
"""


def clips_with_words(
    database: Reader, scopes: Sequence[Scope], words: Sequence[str]
) -> dict[int, NDArray[np.int64]]:
    """Return the clips in view that contain words or phrases, matched by stem.

    Returns:
        By the number of each word that occurs, (K, 3): the number of the scope, the clip, and how
        many of its lines contain the word.
    """
    if not words or not scopes:
        return {}
    parameters = view_parameters(scopes) | {f"word{n}": word for n, word in enumerate(words)}
    queries = [
        SQL("phraseto_tsquery('english', {})").format(Placeholder(f"word{number}"))
        for number in range(len(words))
    ]
    numbered = [SQL("({}, {})").format(Literal(n), query) for n, query in enumerate(queries)]
    statement = SQL(_WORDS).format(
        view=SQL(VIEW),
        lines=SQL(LINES_IN_VIEW),
        sought=SQL(", ").join(numbered),
        any_word=SQL(" || ").join(queries),
    )
    with reading_driver(database).cursor(binary=True) as cursor:
        rows = cursor.execute(statement, parameters, prepare=False).fetchall()
    found = dict[int, NDArray[np.int64]]()
    for word, data in rows:
        if data:
            # Pairs (scope, clip) of eight bytes; equal ones are counted.
            packed = np.frombuffer(data, dtype=">i8").astype(np.int64)
            pairs, counts = np.unique(packed, return_counts=True)
            found[word] = np.stack([pairs >> 32, pairs & 0xFFFFFFFF, counts], axis=1)
    return found


@dataclass(frozen=True, eq=False)
class LineArrays:
    """M lines as arrays, sorted by scope, clip, time and id; ``vectors`` is (M, D).

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


_NUMBER_FIELDS = ("video", "id", "clip", "start_ms", "end_ms", "clip_start_ms", "clip_end_ms")
_ORDER = ("id", "start_ms", "clip", "video")
# All rows in two values: fetching thousands of rows one by one takes longer than the query. numpy
# sorts them, since Postgres would copy the vectors.
_LINES_OF_CLIPS = """
    WITH {view}, requested AS MATERIALIZED (
        SELECT DISTINCT scope, clip
        FROM unnest(%(scope_numbers)s::int[], %(clips)s::int[]) AS given (scope, clip))
    SELECT string_agg(int8send(view.number) || int8send(m.id) || int8send(m.clip)
               || int8send(m.start_ms) || int8send(m.end_ms)
               || int8send(c.start_ms) || int8send(c.end_ms), ''::bytea),
           string_agg(halfvec_send(m.embedding), ''::bytea)
    FROM requested
    JOIN view ON view.number = requested.scope AND requested.clip <= view.last_clip
    JOIN memories AS m ON m.video_id = view.video AND m.clip = requested.clip
         AND (m.superseded_at IS NULL OR m.superseded_at > view.last_clip)
    JOIN clips AS c ON c.video_id = view.video AND c.clip = requested.clip
    WHERE vector_dims(m.embedding) = {size}
"""


def lines_of_clips(
    database: Reader, scopes: Sequence[Scope], clips: Iterable[tuple[int, int]], size: int
) -> LineArrays:
    """Return the lines of clips that have a vector of ``size`` numbers.

    Args:
        database: A connection or session.
        clips: (number of the scope, clip) pairs.
        size: D; lines with vectors of another size are left out.
    """
    pairs = sorted(set(clips))
    statement = SQL(_LINES_OF_CLIPS).format(view=SQL(VIEW), size=Literal(size))
    parameters = view_parameters(scopes) | {
        "scope_numbers": [scope for scope, _ in pairs],
        "clips": [clip for _, clip in pairs],
    }
    with reading_driver(database).cursor(binary=True) as cursor:
        row = cursor.execute(statement, parameters, prepare=False).fetchone()
    numbers, vectors = row or (None, None)
    rows = np.frombuffer(numbers or b"", dtype=[(name, ">i8") for name in _NUMBER_FIELDS])
    halves = np.frombuffer(vectors or b"", dtype=[("header", ">i4"), ("vector", ">f2", (size,))])
    order = np.lexsort([rows[name] for name in _ORDER])
    columns = {name: rows[name][order].astype(np.int64) for name in _NUMBER_FIELDS}
    return LineArrays(**columns, vectors=halves["vector"][order].astype(np.float32))


_STORED_LINES = """
    SELECT id, clip, start_ms, end_ms, kind, text, source, speaker, superseded_at
    FROM memories WHERE id = ANY(%s)
"""


def read_lines(connection: Reader, ids: Collection[int]) -> dict[int, StoredLine]:
    rows = reading_driver(connection).execute(_STORED_LINES, (sorted(ids),)).fetchall()
    return {row[0]: StoredLine._make(row) for row in rows}


# Which videos of a large view have the words of a question.

# Searches that more lines match are left out: they tell videos too little apart.
FREQUENT = 2_000
_FREQUENCIES = """
    SELECT word, freq * c.reltuples
    FROM unnest(%(words)s::text[]) AS given (word)
    CROSS JOIN LATERAL tsvector_to_array(to_tsvector('english', word)) AS lexemes
    JOIN pg_stats AS s ON s.tablename = 'memories' AND s.attname = 'words'
    CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
        AS common (lexeme, freq)
    JOIN pg_class AS c ON c.oid = 'memories'::regclass
    WHERE cardinality(lexemes) = 1 AND common.lexeme = lexemes[1]
"""


def frequent_words(database: Reader, words: Sequence[str]) -> set[str]:
    """Return those of these words that more than ``FREQUENT`` lines have, as Postgres estimates."""
    # It knows the most common words of a table since it was analysed last.
    rows = reading_driver(database).execute(_FREQUENCIES, {"words": list(words)}).fetchall()
    return {word for word, lines in rows if lines > FREQUENT}


# The view is parsed once, however many searches there are.
_VIEW = "WITH view AS MATERIALIZED (SELECT %(last_clip_of)s::jsonb AS last_clips)"
_MATCHES = """
    (SELECT {number}, array_agg(found.video_id)
     FROM (SELECT m.video_id FROM memories AS m CROSS JOIN LATERAL (
               SELECT ((SELECT last_clips FROM view) ->> m.video_id)::int AS last_clip) AS scope
           WHERE words @@ ({query}) AND m.clip <= scope.last_clip
             AND (m.superseded_at IS NULL OR m.superseded_at > scope.last_clip)
           LIMIT %(limit)s) AS found)
"""


def videos_with_words(
    database: Reader, scopes: Sequence[Scope], searches: Sequence[Sequence[str]]
) -> dict[int, list[str]]:
    """Return the videos of the lines in view that have all words of a search, matched by stem.

    Args:
        database: A connection or session.
        searches: Words or phrases, at least one each.

    Returns:
        By the number of a search, the video of each line that it matches; without searches that
        more than ``FREQUENT`` lines in view match.
    """
    if not searches or not scopes:
        return {}
    parameters: dict[str, Any] = {"last_clip_of": last_clip_of(scopes), "limit": FREQUENT + 1}
    parts = []
    for number, words in enumerate(searches):
        names = [f"word{number}_{place}" for place in range(len(words))]
        parameters |= dict(zip(names, words, strict=True))
        query = SQL(" && ").join(
            SQL("phraseto_tsquery('english', {})").format(Placeholder(name)) for name in names
        )
        parts.append(SQL(_MATCHES).format(number=Literal(number), query=query))
    statement = SQL("{} {}").format(SQL(_VIEW), SQL(" UNION ALL ").join(parts))
    rows = reading_driver(database).execute(statement, parameters, prepare=False).fetchall()
    return {number: videos for number, videos in rows if videos and len(videos) <= FREQUENT}
