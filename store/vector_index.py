"""The HNSW index over memories, for searches of large libraries.

pgvector updates it as lines are added. Building it takes a second for a few thousand lines and
minutes for a million, so it is built, with progress, once a library is large: at the end of an
import or ingestion, or by ``homer db index``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
from psycopg.sql import SQL, Identifier

from store.database import Store
from store.progress import Progress
from store.queries.hnsw import has_index, index_name, index_statement

LARGE = 50_000
"""Libraries with more lines than this need an index."""
MEMORY = "512MB"
"""Most memory for building an index (``maintenance_work_mem``)."""
LOOK_S = 0.5
"""Seconds between two reads of the progress."""

_LINES = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'memories'::regclass"
_SIZES = """
    SELECT DISTINCT vector_dims(embedding)
    FROM (SELECT embedding FROM memories WHERE embedding IS NOT NULL ORDER BY id DESC LIMIT 1000)
"""
_PROGRESS = """
    SELECT tuples_done, tuples_total FROM pg_stat_progress_create_index
    WHERE relid = 'memories'::regclass
"""


def missing_indexes(store: Store) -> list[int]:
    """Return the vector sizes of a large library that lack a complete index.

    The number of lines is the database's own estimate.
    """
    with store.explaining_failures(), psycopg.connect(store.psycopg_url) as connection:
        (lines,) = connection.execute(_LINES).fetchone() or (0,)
        if lines <= LARGE:
            return []
        sizes = [size for (size,) in connection.execute(_SIZES)]
    with store.begin() as session:
        return [size for size in sizes if not has_index(session, size)]


def build_index(store: Store, progress: Progress, sizes: list[int] | None = None) -> int:
    """Build missing indexes, without blocking reads and writes.

    Args:
        store: The store.
        progress: Reports lines done.
        sizes: Vector sizes; None: those of ``missing_indexes``.

    Returns:
        The number of indexes built.
    """
    missing = missing_indexes(store) if sizes is None else sizes
    for size in missing:
        with (
            store.explaining_failures(),
            psycopg.connect(store.psycopg_url, autocommit=True) as connection,
            _reported(store, progress),
        ):
            # A killed build leaves an invalid index, which Postgres never completes.
            name = Identifier(index_name(size))
            connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            connection.execute(SQL("SET maintenance_work_mem = {}").format(MEMORY))
            connection.execute(index_statement(size))
    return len(missing)


@contextmanager
def _reported(store: Store, progress: Progress) -> Iterator[None]:
    """Report the progress of a build during the block, from a thread."""
    ended = Event()
    reader = Thread(target=_report, args=(store.psycopg_url, progress, ended), daemon=True)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()


def _report(url: str, progress: Progress, ended: Event) -> None:
    done = total = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not ended.wait(LOOK_S):
            row = connection.execute(_PROGRESS).fetchone()
            if not row or not row[1]:
                continue
            if not total:
                total = int(row[1])
                progress.start("search index", total)
            current = min(int(row[0]), total)
            progress.step(max(0, current - done))
            done = max(done, current)
