"""Many rows at once: binary COPY, which costs a tenth of as many INSERTs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from psycopg.sql import SQL, Identifier
from sqlalchemy import text
from sqlalchemy.orm import Session

from store.driver import driver_of

HALFVEC = "bytea"
"""How ``pack_halfvec``'s bytes are to be sent; the column's own type reads them."""


def pack_halfvec(vector: Sequence[float] | np.ndarray[Any, Any] | None) -> bytes | None:
    """A vector (D,) as pgvector's binary ``halfvec``: its size, two zero bytes, 16-bit floats."""
    if vector is None:
        return None
    halves = np.asarray(vector, dtype=np.float32).astype(">f2")
    return len(halves).to_bytes(2, "big") + b"\0\0" + halves.tobytes()


def unpack_halfvecs(packed: Iterable[bytes | None]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """The vectors of ``halfvec_send``, (D,) each; empty ones for None."""
    return [np.frombuffer((one or b"")[4:], dtype=">f2").astype(np.float32) for one in packed]


def take_ids(session: Session, table: str, count: int) -> list[int]:
    """The next ids of a table with an identity column ``id``."""
    query = "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
    return list(session.scalars(text(query), {"table": table, "count": count}))


def copy_rows(
    session: Session, table: str, types: Mapping[str, str], rows: Sequence[Sequence[Any]]
) -> None:
    """Append rows to a table within the session's transaction.

    Args:
        session: An open transaction.
        table: The table's name.
        types: Column to Postgres type, in the order of the rows' values.
        rows: Values; texts must be free of NUL.
    """
    if not rows:
        return
    session.flush()
    connection = driver_of(session.connection())
    columns = SQL(", ").join(map(Identifier, types))
    command = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(Identifier(table), columns)
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types(list(types.values()))
        for row in rows:
            copy.write_row(row)
