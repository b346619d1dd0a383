"""All rows of a library, table by table, copied out and in by Postgres's COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from store.driver import driver_of
from store.tables.schema import AuditRow, Base, LibraryRow

Driver = psycopg.Connection[Any]


@dataclass(frozen=True)
class CopiedTable:
    """A table to copy. ``counted``: identity columns."""

    name: str
    columns: tuple[str, ...]
    counted: tuple[str, ...]


def copied_tables() -> list[CopiedTable]:
    """Return all tables in the order in which to fill them.

    The library's id is not copied as a row.
    """
    return [
        CopiedTable(
            table.name,
            tuple(column.name for column in table.columns if not column.computed),
            tuple(column.name for column in table.columns if column.identity),
        )
        for table in Base.metadata.sorted_tables
        if table.name != LibraryRow.__tablename__
    ]


def count_rows(connection: Connection, tables: Iterable[CopiedTable]) -> int:
    """Return the total number of rows of these tables."""
    driver = driver_of(connection)
    queries = (SQL("SELECT count(*) FROM {}").format(Identifier(table.name)) for table in tables)
    return sum(int(_scalar(driver, query) or 0) for query in queries)


def tables_with_rows(connection: Connection) -> list[str]:
    """Return the names of tables that have rows; the audit log does not count."""
    driver, query = driver_of(connection), SQL("SELECT EXISTS (SELECT FROM {})")
    names = [one.name for one in copied_tables() if one.name != AuditRow.__tablename__]
    return [name for name in names if _scalar(driver, query.format(Identifier(name)))]


def lock_all_tables(connection: Connection) -> None:
    """Lock Homer's tables against all reads and writes until this transaction ends."""
    names = SQL(", ").join(Identifier(table.name) for table in copied_tables())
    driver_of(connection).execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))


def read_counters(connection: Connection, table: CopiedTable) -> dict[str, int]:
    """Return the last id given by each identity column; those that gave none are left out."""
    driver, counters = driver_of(connection), dict[str, int]()
    for column in table.counted:
        last = _scalar(driver, _LAST, [table.name, column])
        counters |= {column: int(last)} if last is not None else {}
    return counters


_LAST = "SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, %s)::regclass)"
_SET = "SELECT setval(pg_get_serial_sequence(%s, %s)::regclass, %s)"


def set_counters(connection: Connection, table: CopiedTable, counters: dict[str, int]) -> None:
    """Continue the ids of new rows from these."""
    for column in table.counted:
        if counters.get(column):
            driver_of(connection).execute(_SET, [table.name, column, counters[column]])


def set_copy_format(connection: Connection) -> None:
    """Set the text format of values, whatever the server's settings, and lift the time-out."""
    for setting in ("datestyle = 'ISO, YMD'", "extra_float_digits = 1", "statement_timeout = 0"):
        connection.execute(text(f"SET LOCAL {setting}"))
    connection.execute(text("SET LOCAL bytea_output = 'hex'"))
    connection.execute(text("SET LOCAL intervalstyle = 'postgres'"))


def copy_out(
    connection: Connection, table: CopiedTable, write: Callable[[memoryview], Any]
) -> None:
    """Copy a table's rows to ``write``, block by block."""
    query = SQL("COPY {} ({}) TO STDOUT").format(*_name_and_columns(table))
    with driver_of(connection).cursor() as cursor, cursor.copy(query) as copy:
        for block in copy:
            write(memoryview(block))


def copy_in(connection: Connection, table: CopiedTable, blocks: Iterator[bytes]) -> int:
    """Append what ``copy_out`` wrote of a table; return the number of rows."""
    return _copy(driver_of(connection), *_name_and_columns(table), blocks)


def _copy(driver: Driver, name: Identifier, columns: Composed, blocks: Iterator[bytes]) -> int:
    query = SQL("COPY {} ({}) FROM STDIN").format(name, columns)
    with driver.cursor() as cursor:
        with cursor.copy(query) as copy:
            for block in blocks:
                copy.write(block)
        return cursor.rowcount  # Not available once the cursor is closed.


def merge_in(connection: Connection, table: CopiedTable, blocks: Iterator[bytes]) -> int:
    """Append those rows that ``copy_out`` wrote of a table and that are missing.

    Returns:
        How many rows were written by ``copy_out``, missing here or not.
    """
    name, columns = _name_and_columns(table)
    temporary = Identifier("pg_temp", "arriving")
    driver = driver_of(connection)
    driver.execute(SQL("CREATE TEMP TABLE arriving (LIKE {}) ON COMMIT DROP").format(name))
    count = _copy(driver, temporary, columns, blocks)
    statement = SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ON CONFLICT DO NOTHING")
    driver.execute(statement.format(name, columns, temporary))
    return count


def analyze_tables(connection: Connection) -> None:
    """Update the planner's statistics of all tables."""
    for table in copied_tables():
        driver_of(connection).execute(SQL("ANALYZE {}").format(Identifier(table.name)))


def set_library_id(session: Session, name: str) -> None:
    """Set the library's id."""
    session.execute(text("UPDATE library SET id = :name"), {"name": name})


def _name_and_columns(table: CopiedTable) -> tuple[Identifier, Composed]:
    return Identifier(table.name), SQL(", ").join(map(Identifier, table.columns))


def _scalar(driver: psycopg.Connection[Any], query: Any, values: list[Any] | None = None) -> Any:
    row = driver.execute(query, values).fetchone()
    return row[0] if row else None
