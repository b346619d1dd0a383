"""The HNSW indexes of vectors: one for each size, built once a library has many of them."""

from __future__ import annotations

from typing import NamedTuple

from psycopg.sql import SQL, Composed, Identifier, Literal

from store.queries.view_conditions import Reader, reading_driver


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
    """Return the statement that builds the HNSW index of vectors of ``size`` numbers.

    The column holds vectors of any size, so the index is on a cast, and partial.
    """
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
