"""The HNSW index over memories, which large libraries are searched through.

pgvector keeps it up to date as lines come. Building it takes a second for a few thousand lines and
minutes for a million, so it is built once a library is large, with progress, by whoever made it so
(an import, an ingestion) or by ``homer db index``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
from psycopg.sql import SQL, Identifier

from store.database import Store
from store.progress import Progress
from store.queries.candidates import has_index, index_name, index_statement

LARGE = 50_000
"""Libraries of more lines are to have an index."""
MEMORY = "512MB"
"""Memory that building may take (``maintenance_work_mem``)."""
LOOK_S = 0.5
"""How often progress is read, in seconds."""

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
    """Return the vector sizes of a large library that have no complete index; empty: none is due.

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
    """Build the indexes that are missing, while others go on reading and writing.

    Args:
        store: The store.
        progress: Reports lines done.
        sizes: Vector sizes; None: those of ``missing_indexes``.

    Returns:
        How many were built.
    """
    due = missing_indexes(store) if sizes is None else sizes
    for size in due:
        with (
            store.explaining_failures(),
            psycopg.connect(store.psycopg_url, autocommit=True) as connection,
            _reported(store, progress),
        ):
            # What a killed build left is not complete, and would never be.
            name = Identifier(index_name(size))
            connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            connection.execute(SQL("SET maintenance_work_mem = {}").format(MEMORY))
            connection.execute(index_statement(size))
    return len(due)


@contextmanager
def _reported(store: Store, progress: Progress) -> Iterator[None]:
    """Report how far a build is, read in a thread of its own, until it ends."""
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
            now = min(int(row[0]), total)
            progress.step(max(0, now - done))
            done = max(done, now)
