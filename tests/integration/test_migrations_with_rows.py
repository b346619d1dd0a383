"""Every schema that was ever released, with rows in every table, comes to today's tables whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from store.database import open_store
from store.driver import parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD, migrate, migrate_to
from store.tables.schema import Base
from tests.support.full_suite import ends
from tests.support.library import revisions
from views.library import delete_video_rows, dump_lines, list_library

REVISIONS = revisions()
VIDEOS = ("a" * 16, "b" * 16)
OWN = {"alembic_version", "library"}
DERIVED = {"search_indexes"}
"""Tables of earlier code that were made of others; today there are none."""

# What a column of that name holds where any text would do for the database, but not for Homer.
MEANT: dict[str, Any] = {
    "state": "done",
    "kind": "face",
    "source": "said",
    "origin": "speech",
    "relation": "before",
    "machine": "homer",
    "profile": "local",
    "subtitles": ["talk.srt"],
}


class Filler:
    """Fills tables as they are in the database, whatever their revision."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._inspect = connection, inspect(connection)
        self._made: dict[str, list[dict[str, Any]]] = {}

    def fill(self) -> set[str]:
        """Two rows in every table; returns the tables."""
        names = [name for name, _ in self._inspect.get_sorted_table_and_fkc_names() if name]
        for name in [name for name in names if name not in OWN]:
            for number in range(2):
                self._add(name, number)
        return set(self._made)

    def _add(self, table: str, number: int) -> None:
        columns = [c for c in self._inspect.get_columns(table) if not c.get("computed")]
        row = {c["name"]: self._value(table, c, number) for c in columns}
        for key in self._inspect.get_foreign_keys(table):
            parent = self._made[key["referred_table"]][number]
            pairs = zip(key["constrained_columns"], key["referred_columns"], strict=True)
            row |= {own: parent[theirs] for own, theirs in pairs}
        listed = ", ".join(f'"{name}"' for name in row)
        query = (
            f"INSERT INTO {table} ({listed}) SELECT {listed} "  # noqa: S608
            f"FROM jsonb_populate_record(NULL::{table}, CAST(:row AS jsonb))"
        )
        self._connection.execute(text(query), {"row": json.dumps(row)})
        self._made.setdefault(table, []).append(row)

    def _value(self, table: str, column: Any, number: int) -> Any:
        name, kind = column["name"], str(column["type"]).upper()
        if table == "videos" and name == "id":
            return VIDEOS[number]
        if name == "sha256":
            return f"{number}" * 64
        if name in MEANT:
            return MEANT[name]
        for known, value in VALUES.items():
            if kind.startswith(known):
                return value(number)
        raise AssertionError(f"{table}.{name} is of an unknown type {kind}")


VALUES: dict[str, Callable[[int], Any]] = {
    "TEXT[]": lambda n: [f"text {n}", "\t\\ \u2028 é"],
    "BIGINT[]": lambda n: [n],
    "ARRAY": lambda n: [n],
    "TEXT": lambda n: f"text {n} \t\\ \u2028 é",
    "BIGINT": lambda n: n,
    "INTEGER": lambda n: n,
    "DOUBLE": lambda n: n + 1 / 3,
    "REAL": lambda n: n + 0.5,
    "BOOLEAN": bool,
    "JSONB": lambda n: [] if n else {},
    "TIMESTAMP": lambda n: f"2026-01-0{n + 1}T00:00:00.123456+00:00",
    "BYTEA": lambda n: f"\\x0{n}ff",
    "HALFVEC": lambda n: f"[{n},0.5,0.25]",
    "VECTOR": lambda n: f"[{n},0.5,0.25]",
}


def rows(connection: Connection, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every row's named columns, as Postgres writes them."""
    found = {}
    for table, names in columns.items():
        listed = ", ".join(f'"{name}"' for name in names)
        query = f"SELECT t::text FROM (SELECT {listed} FROM {table}) t ORDER BY 1"  # noqa: S608
        found[table] = list(connection.execute(text(query)).scalars())
    return found


def columns_of(connection: Connection, tables: set[str]) -> dict[str, list[str]]:
    seen = inspect(connection)
    return {name: [c["name"] for c in seen.get_columns(name)] for name in sorted(tables)}


def stored_columns(connection: Connection, tables: set[str]) -> dict[str, list[str]]:
    """The columns that hold what nothing else tells: none computed, and no search indexes."""
    seen = inspect(connection)
    return {
        name: [c["name"] for c in seen.get_columns(name) if not c.get("computed")]
        for name in sorted(tables & set(Base.metadata.tables))
    }


def written_columns(connection: Connection, tables: set[str]) -> dict[str, list[str]]:
    """The columns that hold what was written, not what the database makes of others."""
    seen = inspect(connection)
    return {
        name: [c["name"] for c in seen.get_columns(name) if not c.get("computed")]
        for name in sorted(tables - DERIVED)
    }


@pytest.fixture
def bare(postgres: EmbeddedPostgres) -> str:
    """A database without a single table."""
    return postgres.ensure_database(f"bare_{uuid4().hex}")


@pytest.mark.parametrize("revision", ends(REVISIONS))
def test_rows_of_every_released_schema_are_all_there_today(
    home: Home, bare: str, revision: str
) -> None:
    engine = create_engine(parse_url(bare))
    with engine.begin() as connection:
        migrate_to(connection, revision)
        tables = Filler(connection).fill()
        columns = written_columns(connection, tables)
        before = rows(connection, columns)
    migrate(bare)
    with engine.begin() as connection:
        assert rows(connection, columns) == before
        now = columns_of(connection, set(Base.metadata.tables))
    assert {name: set(found) for name, found in now.items()} == {
        name: set(table.columns.keys()) for name, table in Base.metadata.tables.items()
    }
    engine.dispose()
    with open_store(home, bare) as store:
        assert {one.id for one in list_library(store)} == set(VIDEOS)
        lines = [json.loads(line) for line in dump_lines(store, VIDEOS[1])]
        assert {"video", "clip", "memory", "edge", "patch"} <= {line["row"] for line in lines}
        for video in VIDEOS:
            delete_video_rows(store, video)
        assert list_library(store) == []


@pytest.mark.parametrize("revision", ends(REVISIONS[:-1]))
def test_rows_that_go_back_a_revision_come_forward_again(bare: str, revision: str) -> None:
    engine = create_engine(parse_url(bare))
    with engine.begin() as connection:
        migrate_to(connection, revision)
        columns = written_columns(connection, Filler(connection).fill())
        before = rows(connection, columns)
        migrate_to(connection, HEAD)
        migrate_to(connection, revision)
        assert rows(connection, columns) == before
        migrate_to(connection, HEAD)
    engine.dispose()
