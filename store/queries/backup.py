"""All rows of a library, copied out and in by COPY, and one video's as JSON and as records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from pgvector.sqlalchemy import HALFVEC, VECTOR
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Subquery,
    Table,
    Text,
    and_,
    cast,
    func,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Session, aliased

from store.driver import driver_of
from store.queries.forget import Copy
from store.tables.library import GrantRow, SharedLinkRow
from store.tables.schema import (
    LOOKED_AT,
    AlertClipRow,
    AlertHitRow,
    AlertRow,
    AuditRow,
    Base,
    BlobRow,
    CorrectionRow,
    FrameRow,
    JudgementRow,
    KeyframeRow,
    LibraryRow,
    MessageRow,
    ModelCallRow,
    ObservationRow,
    QuestionRow,
    SkillRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    VideoRow,
)

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
    session.execute(text("UPDATE library SET id = :name"), {"name": name})


def _name_and_columns(table: CopiedTable) -> tuple[Identifier, Composed]:
    return Identifier(table.name), SQL(", ").join(map(Identifier, table.columns))


def _scalar(driver: psycopg.Connection[Any], query: Any, values: list[Any] | None = None) -> Any:
    row = driver.execute(query, values).fetchone()
    return row[0] if row else None


# All rows of one video and of the answers about it, exported and inserted again.


TABLES = Base.metadata.tables
IDENTITY_TABLES = {
    name for name, table in TABLES.items() if "id" in table.c and table.c.id.identity
}
"""Tables with an identity column."""
OWN_TO_LIBRARY = {
    *(AlertRow.__tablename__, AlertClipRow.__tablename__, AlertHitRow.__tablename__),
    *(SharedLinkRow.__tablename__, GrantRow.__tablename__),
}
"""Tables that are not exported with a video: a library's own alerts, links and rights."""
EXPERIENCE = {JudgementRow.__tablename__, ObservationRow.__tablename__, SkillRow.__tablename__}
"""Tables of what a library learns from: neither exported with a video nor ever imported."""
WHO_ASKED = TrajectoryRow.viewer.key
"""The column of trajectories that is not exported, nor accepted: it names a user."""
_OF_ANOTHER = re.compile(" of video [0-9a-f]{16}")


def exported_tables() -> list[str]:
    """Return the tables that hold rows of a video, referenced tables first."""
    conditions = conditions_of_video("")
    return [table.name for table in Base.metadata.sorted_tables if table.name in conditions]


def rows_of_video(session: Session, video: str) -> Iterator[Copy]:
    """Yield every row of a video and of the trajectories over it alone, in insertion order.

    Corrections that join its people with those of other videos do not name these.
    """
    conditions = conditions_of_video(video)
    for name in exported_tables():
        table = TABLES[name]
        row = cast(func.to_jsonb(literal_column(name)).op("-")(WHO_ASKED), Text)
        query = select(row).select_from(table).where(conditions[name])
        query = query.order_by(*table.primary_key).execution_options(yield_per=500)
        for content in session.scalars(query):
            if name == CorrectionRow.__tablename__:
                content = _OF_ANOTHER.sub(" of another video", content)
            yield Copy(name, content)


def _trajectories_of(video: str) -> Select[str]:
    """Select the trajectories whose view has this video and no other."""
    searched, other = TrajectoryVideoRow, aliased(TrajectoryVideoRow)
    others = select(other.video_id).where(other.trajectory_id == searched.trajectory_id)
    alone = ~others.where(other.video_id != video).exists()
    return select(searched.trajectory_id).where(searched.video_id == video, alone)


def conditions_of_video(video: str) -> dict[str, ColumnElement[bool]]:
    """Return what selects the rows of a video in each table that has some, and of its answers."""
    trajectories = _trajectories_of(video)
    by_writers = and_(ModelCallRow.video_id == video, ModelCallRow.trajectory_id.is_(None))
    of_call = or_(by_writers, ModelCallRow.trajectory_id.in_(trajectories))
    questions = select(TrajectoryRow.question_id).where(TrajectoryRow.id.in_(trajectories))
    messages = select(func.unnest(ModelCallRow.messages)).where(of_call)
    conditions: dict[str, ColumnElement[bool]] = {
        VideoRow.__tablename__: VideoRow.id == video,
        QuestionRow.__tablename__: QuestionRow.id.in_(questions),
        TrajectoryRow.__tablename__: TrajectoryRow.id.in_(trajectories),
        MessageRow.__tablename__: MessageRow.hash.in_(messages),
        ModelCallRow.__tablename__: of_call,
    }
    for table in Base.metadata.sorted_tables:
        if table.name in OWN_TO_LIBRARY | EXPERIENCE:
            continue
        parents = {key.column.table.name for key in table.foreign_keys}
        if parents and parents <= conditions.keys() and table.name not in conditions:
            if "trajectory_id" in table.c:
                conditions[table.name] = table.c.trajectory_id.in_(_trajectories_of(video))
            elif "video_id" in table.c:
                conditions[table.name] = table.c.video_id == video
            else:
                key = next(key for key in table.foreign_keys if not key.parent.nullable)
                parent = select(key.column).where(conditions[key.column.table.name])
                conditions[table.name] = key.parent.in_(parent)
    return conditions


def known_columns(name: str) -> frozenset[str]:
    """Return the columns that rows of a table may have; none for an unknown table."""
    if name not in exported_tables():
        return frozenset()
    return frozenset(column.name for column in TABLES[name].columns) - {WHO_ASKED}


def any_id_exists(session: Session, name: str, ids: Iterable[int]) -> bool:
    """Check whether a table has a row with one of these ids."""
    query = f"SELECT EXISTS (SELECT FROM {TABLES[name].name} WHERE id = ANY(:ids))"
    return bool(session.scalar(text(query), {"ids": list(ids)}))


def known_trajectories(session: Session, ids: Iterable[str]) -> set[str]:
    """Return those of these trajectories that are in the library."""
    query = select(TrajectoryRow.id).where(TrajectoryRow.id.in_(list(ids)))
    return set(session.scalars(query))


def continue_ids_after(session: Session, name: str, last: int) -> None:
    """Continue the ids of a table after ``last`` and after all ids given so far."""
    query = """
        SELECT setval(place, greatest(:last, coalesce(pg_sequence_last_value(place), 0)))
        FROM (SELECT pg_get_serial_sequence(:name, 'id')::regclass AS place) AS one
    """
    session.execute(text(query), {"name": name, "last": last})


def insert_json_rows(
    session: Session, name: str, columns: Sequence[str], rows: Sequence[str]
) -> None:
    """Insert rows given as JSON; messages that exist already are skipped."""
    listed = SQL(", ").join(map(Identifier, columns))
    query = SQL(_ADD).format(Identifier(name), listed)
    if name == MessageRow.__tablename__:
        query += SQL(" ON CONFLICT DO NOTHING")
    driver_of(session.connection()).execute(query, [f"[{','.join(rows)}]"])


_ADD = "INSERT INTO {0} ({1}) SELECT {1} FROM jsonb_populate_recordset(NULL::{0}, %s::jsonb)"


Record = dict[str, Any]

KINDS = {
    "video": "videos",
    "clip": "clips",
    "keyframe": "keyframes",
    "utterance": "utterances",
    "screen_text": "screen_texts",
    "object": "objects",
    "identity": "identities",
    "sighting": "sightings",
    "exemplar": "exemplars",
    "character_member": "character_members",
    "character_name": "character_names",
    "correction": "corrections",
    "identity_statement": "identity_statements",
    "memory": "memories",
    "memory_link": "memory_links",
    "memory_strength": "memory_strengths",
    "segment": "segments",
    "segment_revision": "segment_revisions",
    "edge": "edges",
    "patch": "patches",
    "build": "builds",
    "keeper": "keepers",
    "frame": "frames",
    "node_revision": "node_revisions",
    "entity": "entities",
    "relation": "relations",
    "model_call": "model_calls",
    "blob": "blobs",
}
"""The table of each kind of record, in their order."""

LEFT_OUT = {
    "videos": {"path", "created_at"},
    "clips": {"attempts", "seconds", "budget", "updated_at", "left_out", "dropped"},
    "keyframes": {"likeness_vector"},
    "memories": {"words"},
    "character_names": {"act"},
    "corrections": {"undone", "made_at"},
    "builds": {"built_at"},
    "model_calls": {"ms", "called_at", "trajectory_id"},
}
"""Columns that two ingestions of one video may fill differently, or that follow from others."""

ORDER = (
    *("builder", "level", "kind", "number", "at_clip", "clip", "from_clip", "revision"),
    *("type", "relation", "predicate", "reason", "support"),
)
"""Records of a kind are ordered by those of these that they have, then by what they refer to."""


# Row ids differ between databases, so rows are named by what they are: ``face_3``, ``character_1``,
# ``segment_7``, the second memory of clip 12 ``memory_12_2``, the first sighting of face 3 in clip
# 5 ``face_3_5_1``. Which columns there are, and what refers to what, is read from the tables.
def video_records(session: Session, video_id: str) -> Iterator[Record]:
    """Yield every record of a video; the key ``row`` is its kind.

    Vectors are 12 hex digits of their MD5; clock times and the file's path are left out, so two
    ingestions of one video give equal records.

    Args:
        session: An open transaction, ideally a snapshot.
    """
    conditions = conditions_of_video(video_id)
    for kind, table in KINDS.items():
        query = _query(TABLES[table], video_id).where(conditions[table])
        for row in session.execute(query.execution_options(yield_per=1000)).mappings():
            yield {"row": kind} | dict(row)


def _query(table: Table, video: str) -> Select[*tuple[Any, ...]]:
    """Select a table's rows of a video, names in the place of ids."""
    rows: FromClause = table
    named: list[ColumnElement[str]] = []
    others: list[ColumnElement[Any]] = []
    if table.name in _NAMES:
        own = _named(table, video)
        rows = rows.join(own, own.c.id == table.c.id)
        named.append(own.c.name)
    for column in table.columns:
        if column.name in LEFT_OUT.get(table.name, ()) or column.name == "video_id":
            continue
        referred = next(
            (k.column.table for k in column.foreign_keys if k.column.name == "id"), None
        )
        if referred is not None:
            one = _named(referred, video)
            rows = rows.outerjoin(one, one.c.id == column)
            named.append(one.c.name.label(column.name.removesuffix("_id")))
        elif isinstance(column.type, VECTOR | HALFVEC):
            others.append(func.left(func.md5(cast(column, Text)), 12).label(column.name))
        elif column.name != "id" or table.name == "videos":
            others.append(column)
    keys = {**table.c}
    if table.name == "node_revisions":  # The name of a node is that of a builder's level only.
        node = TABLES["nodes"]
        rows = rows.join(node, node.c.id == table.c.node_id)
        keys = {**node.c, **keys}
        others += [node.c.builder, node.c.level, node.c.number]
    order: list[ColumnElement[Any]] = [keys[name] for name in ORDER if name in keys]
    query = select(*named, *others).select_from(rows)
    # What a clip shows and says stands in the order in which it was written.
    if "start_ms" not in table.c and "time_ms" not in table.c:
        order += named
    return query.where(*_recorded(table, video)).order_by(*order, *table.primary_key)


def _recorded(table: Table, video: str) -> Iterator[ColumnElement[bool]]:
    """Yield what rows must fulfil besides being of the video: they were not left by a question."""
    if table.name == "keyframes":
        yield KeyframeRow.shot != LOOKED_AT
    elif table.name == "corrections":
        yield table.c.undone.is_(False)
    elif table.name == "model_calls":
        yield table.c.trajectory_id.is_(None)
    elif table.name == "blobs":
        b, k, f = BlobRow, KeyframeRow, FrameRow
        of_frame = and_(k.video_id == video, k.blob == b.sha256)
        looked_at = select(k.id).where(of_frame, k.shot == LOOKED_AT).exists()
        chosen = select(k.id).where(of_frame, k.shot != LOOKED_AT).exists()
        kept = select(f.id).where(f.video_id == video, f.blob == b.sha256).exists()
        yield or_(~looked_at, chosen, kept)


_NAMES = {
    "identities": ("kind", "number"),
    "segments": ("segment", "number"),
    "nodes": ("level", "number"),
    "entities": ("type", "name"),
    "memories": ("memory", "clip", "ordinal"),
    "sightings": ("identity", "clip", "ordinal"),
}
"""The columns and words that the name of a row is made of; ``ordinal`` counts rows of a clip."""


def _named(table: Table, video: str) -> Subquery:
    """Select id and name of a table's rows of a video."""
    rows: FromClause = table
    parts: dict[str, Any] = dict(table.c)
    if "ordinal" in _NAMES[table.name]:
        counted: list[ColumnElement[Any]] = [table.c.clip]
        if table.name == "sightings":
            identity = _named(TABLES["identities"], video)
            rows = rows.join(identity, identity.c.id == table.c.identity_id)
            parts["identity"] = identity.c.name
            counted.append(identity.c.name)
        parts["ordinal"] = func.row_number().over(partition_by=counted, order_by=table.c.id)
    words = [cast(parts[part], Text) if part in parts else part for part in _NAMES[table.name]]
    name = func.concat_ws(" " if table.name == "entities" else "_", *words).label("name")
    return select(table.c.id, name).select_from(rows).where(table.c.video_id == video).subquery()


# Some readers take these for line ends, though JSON does not: each record must be one line.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def dump_video(session: Session, video_id: str) -> Iterator[str]:
    """Yield canonical JSON lines, without line ends, of everything learned from a video.

    Rows are named by stable names, vectors by a digest; clock times, the file's path and the number
    of attempts are left out. Empty if there is no such video.
    """
    return map(canonical_record, video_records(session, video_id))


def canonical_record(record: Record) -> str:
    """Return a record as JSON on one line: sorted keys, no spaces, UTF-8."""
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_LINE_ENDS)
