"""The HNSW indexes of the lines' vectors: one for each size, built once a library is large."""

from __future__ import annotations

from psycopg.sql import SQL, Composed, Identifier, Literal

from store.queries.view_conditions import Reader, reading_driver


def index_name(size: int) -> str:
    """Return the name of the HNSW index of vectors of ``size`` numbers."""
    return f"memories_meaning_{size}"


def has_index(database: Reader, size: int) -> bool:
    """Check whether the HNSW index of vectors of this size exists and is complete."""
    row = (
        reading_driver(database)
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
