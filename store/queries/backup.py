"""All rows of a library, table by table, copied out and in by Postgres's COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal
from sqlalchemy import Connection, inspect, text
from sqlalchemy.orm import Session

from store.driver import driver_of
from store.queries.trajectories import CHECKPOINTS
from store.tables.schema import AuditRow, Base, LibraryRow

Driver = psycopg.Connection[Any]
_MIGRATIONS = "checkpoint_migrations"


@dataclass(frozen=True)
class CopiedTable:
    """A table to copy. ``schema`` "" is Homer's own; ``counted``: identity columns."""

    schema: str
    name: str
    columns: tuple[str, ...]
    counted: tuple[str, ...]

    def where(self, homer_schema: str) -> tuple[str, str]:
        """Return schema and name; ``homer_schema`` is Homer's."""
        return self.schema or homer_schema, self.name


def copied_tables(connection: Connection) -> list[CopiedTable]:
    """Return all tables, LangGraph's checkpoints included, in the order in which to fill them.

    The library's id is not copied as a row.
    """
    own = [
        CopiedTable(
            "",
            table.name,
            tuple(column.name for column in table.columns if not column.computed),
            tuple(column.name for column in table.columns if column.identity),
        )
        for table in Base.metadata.sorted_tables
        if table.name != LibraryRow.__tablename__
    ]
    checkpoints = sorted(inspect(connection).get_multi_columns(CHECKPOINTS).items())
    return own + [
        CopiedTable(CHECKPOINTS, name, tuple(column["name"] for column in columns), ())
        for (_, name), columns in checkpoints
        if name != _MIGRATIONS
    ]


def default_schema(connection: Connection) -> str:
    """Return the schema of Homer's tables."""
    return inspect(connection).default_schema_name or "public"


def count_rows(connection: Connection, tables: Iterable[CopiedTable]) -> int:
    """Return the total number of rows of these tables."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    queries = (
        SQL("SELECT count(*) FROM {}").format(_name(table, homer_schema)) for table in tables
    )
    return sum(int(_scalar(driver, query) or 0) for query in queries)


def tables_with_rows(connection: Connection) -> list[str]:
    """Return the names of tables that have rows; the audit log does not count."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    query = SQL("SELECT EXISTS (SELECT FROM {})")
    tables = copied_tables(connection)
    data_tables = [table for table in tables if table.name != AuditRow.__tablename__]
    return [
        table.name
        for table in data_tables
        if _scalar(driver, query.format(_name(table, homer_schema)))
    ]


def lock_all_tables(connection: Connection) -> None:
    """Lock Homer's tables against all reads and writes until this transaction ends."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    names = SQL(", ").join(_name(table, homer_schema) for table in copied_tables(connection))
    driver.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))


def read_counters(connection: Connection, table: CopiedTable) -> dict[str, int]:
    """Return the last id given by each identity column; those that gave none are left out."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    counters: dict[str, int] = {}
    for column in table.counted:
        last = _scalar(driver, SQL(_LAST).format(_quoted(table, homer_schema)), [column])
        counters |= {column: int(last)} if last is not None else {}
    return counters


_LAST = "SELECT pg_sequence_last_value(pg_get_serial_sequence({}, %s)::regclass)"
_SET = "SELECT setval(pg_get_serial_sequence({}, %s)::regclass, %s)"


def set_counters(connection: Connection, table: CopiedTable, counters: dict[str, int]) -> None:
    """Continue the ids of new rows from these."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    for column in table.counted:
        if counters.get(column):
            query = SQL(_SET).format(_quoted(table, homer_schema))
            driver.execute(query, [column, counters[column]])


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
    query = SQL("COPY {} ({}) TO STDOUT").format(*_name_and_columns(connection, table))
    with driver_of(connection).cursor() as cursor, cursor.copy(query) as copy:
        for block in copy:
            write(memoryview(block))


def copy_in(connection: Connection, table: CopiedTable, blocks: Iterator[bytes]) -> int:
    """Append what ``copy_out`` wrote of a table; return the number of rows."""
    return _copy(driver_of(connection), *_name_and_columns(connection, table), blocks)


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
    name, columns = _name_and_columns(connection, table)
    temporary = Identifier("pg_temp", "arriving")
    driver = driver_of(connection)
    driver.execute(SQL("CREATE TEMP TABLE arriving (LIKE {}) ON COMMIT DROP").format(name))
    count = _copy(driver, temporary, columns, blocks)
    statement = SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ON CONFLICT DO NOTHING")
    driver.execute(statement.format(name, columns, temporary))
    return count


def checkpoint_values(connection: Connection) -> Iterator[tuple[str, bytes | None]]:
    """Yield the format and the bytes of every channel's value in every checkpoint."""
    if not inspect(connection).has_table("checkpoint_blobs", CHECKPOINTS):
        return
    query = f"SELECT type, blob FROM {CHECKPOINTS}.checkpoint_blobs"
    rows = connection.execute(text(query), execution_options={"yield_per": 100})
    yield from ((row.type, row.blob) for row in rows)


def analyze_tables(connection: Connection) -> None:
    """Update the planner's statistics of all tables."""
    driver, homer_schema = driver_of(connection), default_schema(connection)
    for table in copied_tables(connection):
        driver.execute(SQL("ANALYZE {}").format(_name(table, homer_schema)))


def set_library_id(session: Session, name: str) -> None:
    """Set the library's id."""
    session.execute(text("UPDATE library SET id = :name"), {"name": name})


def _name_and_columns(connection: Connection, table: CopiedTable) -> tuple[Identifier, Composed]:
    homer_schema = default_schema(connection)
    return _name(table, homer_schema), SQL(", ").join(map(Identifier, table.columns))


def _name(table: CopiedTable, homer_schema: str) -> Identifier:
    return Identifier(*table.where(homer_schema))


def _quoted(table: CopiedTable, homer_schema: str) -> Any:
    """Return the name as a literal, for functions that take a table's name."""
    return Literal(_name(table, homer_schema).as_string())


def _scalar(driver: psycopg.Connection[Any], query: Any, values: list[Any] | None = None) -> Any:
    row = driver.execute(query, values).fetchone()
    return row[0] if row else None
