"""The HNSW indexes of a large library: over its memories, and over its faces and voices.

pgvector updates them as rows are added. Building one takes a second for a few thousand rows and
minutes for a million, so it is built, with progress, once a library is large: at the end of an
import or ingestion, or by ``homer db index``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

from store.database import Store
from store.progress import Progress
from store.queries.conditions import Reader, reading_driver

# The HNSW indexes of vectors: one for each size, built once a library has many of them.


class IndexedVectors(NamedTuple):
    """Vectors that get an index: their table and column, and how the names of indexes begin."""

    table: str
    column: str
    name: str


MEMORIES = IndexedVectors("memories", "embedding", "memories_meaning")
"""The vectors of memories."""
EXEMPLARS = IndexedVectors("exemplars", "vector", "exemplars_likeness")
"""The vectors of faces and voices."""


def index_name(size: int, of: IndexedVectors = MEMORIES) -> str:
    """Return the name of the HNSW index of vectors of ``size`` numbers."""
    return f"{of.name}_{size}"


def has_index(database: Reader, size: int, of: IndexedVectors = MEMORIES) -> bool:
    """Check whether the HNSW index of vectors of this size exists and is complete."""
    row = (
        reading_driver(database)
        .execute(
            "SELECT i.indisvalid FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid"
            " WHERE c.relname = %s",
            (index_name(size, of),),
        )
        .fetchone()
    )
    return bool(row and row[0])


def index_statement(size: int, of: IndexedVectors = MEMORIES) -> Composed:
    """Return the statement that builds the HNSW index of vectors of ``size`` numbers."""
    # The column holds vectors of any size, so the index is on a cast, and partial.
    return SQL(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table}"
        " USING hnsw (({column}::halfvec({size})) halfvec_cosine_ops)"
        " WHERE vector_dims({column}) = {size}"
    ).format(
        name=Identifier(index_name(size, of)),
        table=Identifier(of.table),
        column=Identifier(of.column),
        size=Literal(size),
    )


# Libraries with more rows than this need an index. A search compares a query with the lines once,
# but every face and voice of a video with all exemplars.
LARGE = {MEMORIES: 50_000, EXEMPLARS: 10_000}
MEMORY = "512MB"
"""Most memory for building an index (``maintenance_work_mem``)."""
LOOK_S = 0.5
"""Seconds between two reads of the progress."""

_ROWS = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s::regclass"
_SIZES = """
    SELECT DISTINCT vector_dims(vector) FROM (
        SELECT {column} AS vector FROM {table} WHERE {column} IS NOT NULL ORDER BY id DESC
        LIMIT 1000) AS newest ORDER BY 1
"""
_PROGRESS = """
    SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index
    WHERE relid = %s::regclass
"""


class VectorIndex(NamedTuple):
    """An index of vectors of ``size`` numbers."""

    of: IndexedVectors
    size: int


def missing_indexes(store: Store) -> list[VectorIndex]:
    """Return the indexes that a large library lacks, or has incomplete."""
    # The number of rows is the database's own estimate.
    with store.explaining_failures(), psycopg.connect(store.psycopg_url) as connection:
        due = []
        for of, least in LARGE.items():
            (rows,) = connection.execute(_ROWS, (of.table,)).fetchone() or (0,)
            if rows > least:
                names = {"table": Identifier(of.table), "column": Identifier(of.column)}
                sizes = connection.execute(SQL(_SIZES).format(**names))
                due += [VectorIndex(of, size) for (size,) in sizes]
    if not due:
        return []
    with store.begin() as session:
        return [index for index in due if not has_index(session, index.size, index.of)]


def build_index(
    store: Store, progress: Progress, indexes: Sequence[VectorIndex] | None = None
) -> int:
    """Build missing indexes, without blocking reads and writes.

    Args:
        indexes: What to build; None: those of ``missing_indexes``.

    Returns:
        The number of indexes built.
    """
    missing = missing_indexes(store) if indexes is None else indexes
    for of, size in missing:
        with (
            store.explaining_failures(),
            psycopg.connect(store.psycopg_url, autocommit=True) as connection,
            _reported(store, progress, of.table),
        ):
            # A killed build leaves an invalid index, which Postgres never completes.
            name = Identifier(index_name(size, of))
            connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            connection.execute(SQL("SET maintenance_work_mem = {}").format(MEMORY))
            connection.execute(index_statement(size, of))
    return len(missing)


@contextmanager
def _reported(store: Store, progress: Progress, table: str) -> Iterator[None]:
    """Report the progress of a build during the block, from a thread."""
    ended = Event()
    reader = Thread(target=_report, args=(store.psycopg_url, progress, table, ended), daemon=True)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()


def _report(url: str, progress: Progress, table: str, ended: Event) -> None:
    done = total = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not ended.wait(LOOK_S):
            row = connection.execute(_PROGRESS, (table,)).fetchone()
            if not row or not row[1]:
                continue
            if not total:
                total = int(row[1])
                progress.start("search index", total)
            current = min(int(row[0]), total)
            progress.step(max(0, current - done))
            done = max(done, current)
