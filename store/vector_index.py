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
from psycopg.sql import SQL, Identifier

from store.database import Store
from store.progress import Progress
from store.queries.hnsw import (
    EXEMPLARS,
    MEMORIES,
    IndexedVectors,
    has_index,
    index_name,
    index_statement,
)

LARGE = {MEMORIES: 50_000, EXEMPLARS: 10_000}
"""Libraries with more rows than this need an index. A search compares a query with the lines once,
but every face and voice of a video with all exemplars."""
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
    """Return the indexes that a large library lacks, or has incomplete.

    The number of rows is the database's own estimate.
    """
    with store.explaining_failures(), psycopg.connect(store.psycopg_url) as connection:
        due = [VectorIndex(of, size) for of in LARGE for size in _large_sizes(connection, of)]
    if not due:
        return []
    with store.begin() as session:
        return [index for index in due if not has_index(session, index.size, index.of)]


def _large_sizes(connection: psycopg.Connection, of: IndexedVectors) -> list[int]:
    """Return the sizes of the newest vectors of a large table; none of a small one."""
    (rows,) = connection.execute(_ROWS, (of.table,)).fetchone() or (0,)
    if rows <= LARGE[of]:
        return []
    names = {"table": Identifier(of.table), "column": Identifier(of.column)}
    return [size for (size,) in connection.execute(SQL(_SIZES).format(**names))]


def build_index(
    store: Store, progress: Progress, indexes: Sequence[VectorIndex] | None = None
) -> int:
    """Build missing indexes, without blocking reads and writes.

    Args:
        progress: Reports rows done.
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
