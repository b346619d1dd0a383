"""Import: a video from an export into a library that does not have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import ARRAY, Column
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.errors import DatabaseError, InputError
from store.bulk_insert import allocate_ids
from store.checkpoint_values import WRITES
from store.database import Store, remove_orphaned_blobs
from store.driver import is_database_failure
from store.export import ExportContents, ExportFile, ExportRow, Row
from store.progress import Progress
from store.queries.audit import record_deed, transaction_time
from store.queries.blobs import lock_blobs_shared
from store.queries.export import (
    CHECKPOINT_NAMES,
    EXPERIENCE,
    TABLES,
    any_id_exists,
    continue_ids_after,
    insert_json_rows,
    known_columns,
    known_trajectories,
)
from store.queries.videos import known_video
from store.tables.schema import VideoRow

BATCH, BATCH_BYTES = 500, 4 << 20
UNCITED_TABLES = ("questions", "model_calls")
"""Tables whose ids nothing cites: their rows always get new ids."""


class ImportedVideo(NamedTuple):
    """The result of an import; ``left``: answers that could not be imported."""

    video: str
    title: str
    clips: int
    answers: int
    left: int


def import_video(
    store: Store, export: ExportFile, contents: ExportContents, progress: Progress
) -> ImportedVideo:
    """Add the video of an export to the library, completely or not at all.

    Rows keep their ids if all of them are free, and answers are imported with them, since they cite
    by id. Otherwise rows get new ids and answers are left out, as are those over other videos too.
    The path of the video's file is never imported.

    Raises:
        InputError: The video is in the library already; or the file is damaged or altered.
        DatabaseError: The database cannot be reached.
    """
    try:
        with store.begin() as session:
            result = _import(store, session, export, contents, progress)
    except BaseException:
        with suppress(DatabaseError):
            remove_orphaned_blobs(store)
        raise
    faults.fault_point(faults.FaultPoint.IMPORTED)
    return result


def _import(
    store: Store, session: Session, export: ExportFile, contents: ExportContents, progress: Progress
) -> ImportedVideo:
    if known_video(session, export.video) is not None:
        raise InputError(f"{export.video} is in this library already: delete it here first")
    lock_blobs_shared(session)
    for _sha, data in export.blobs():
        store.blobs.put(data)
    faults.fault_point(faults.FaultPoint.IMPORTED_IMAGES)
    mapping = RowMapping(session, export.video, contents)
    progress.start("rows", contents.rows)
    try:
        for table, rows in groupby(export.rows(), key=lambda row: row.table):
            columns = known_columns(session, table)
            for batch in _batches(rows):
                imported = [
                    mapping.remapped(table, row) for row in batch if mapping.is_imported(table, row)
                ]
                _add_batch(session, table, columns, imported)
                progress.step(len(batch))
    except (DBAPIError, psycopg.Error) as exc:
        if is_database_failure(exc):
            raise
        raise _altered("its rows do not fit their tables") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise _altered("a row is not of the kind that its table has") from exc
    faults.fault_point(faults.FaultPoint.IMPORTED_ROWS)
    video = known_video(session, export.video)
    if video is None:
        raise _altered("the video itself is not in it")
    record_deed(session, Deed.IMPORTED, video.id)
    answers, clips = len(mapping.answers), mapping.added.get("clips", 0)
    return ImportedVideo(video.id, video.title, clips, answers, len(contents.questions) - answers)


def _batches(rows: Iterable[ExportRow]) -> Iterator[list[Row]]:
    """Yield the rows in lists limited by length and size."""
    batch, size = list[Row](), 0
    for row in rows:
        batch.append(row.row)
        size += row.size
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add_batch(session: Session, table: str, known: frozenset[str], rows: list[Row]) -> None:
    if any(row.keys() != known for row in rows):
        raise _altered(f"no table is like its {table}")
    if rows:
        columns = [name for name in rows[0] if not _computed(table, name)]
        insert_json_rows(session, table, columns, [json.dumps(row) for row in rows])


def _computed(table: str, column: str) -> bool:
    return table in TABLES and TABLES[table].columns[column].computed is not None


def _altered(problem: str) -> InputError:
    return InputError(f"the export was altered: {problem}")


class RowMapping:
    """Decides which rows are imported, and under which ids."""

    def __init__(self, session: Session, video: str, contents: ExportContents) -> None:
        self._session, self._video = session, video
        self.added: dict[str, int] = {}
        cited_ids = {name: ids for name, ids in contents.ids.items() if name not in UNCITED_TABLES}
        ids_are_free = not any(any_id_exists(session, name, ids) for name, ids in cited_ids.items())
        self.answers = self._answers(contents) if ids_are_free else frozenset()
        self._questions = {contents.questions[answer] for answer in self.answers}
        self._hashes, self._now = contents.hashes, transaction_time(session).isoformat()
        message_hashes = (contents.messages.get(answer, set()) for answer in (None, *self.answers))
        self._messages = set[str]().union(*message_hashes)
        self._numbers = {
            name: self._map_ids(name, ids, keep=ids_are_free and name in cited_ids)
            for name, ids in contents.ids.items()
        }

    def is_imported(self, table: str, row: Row) -> bool:
        """Check whether a row is imported."""
        if table in EXPERIENCE:
            return False  # Skills are learned from what was judged here.
        if table == "questions":
            return row["id"] in self._questions
        if table == "messages":
            return row["hash"] in self._messages
        if table in CHECKPOINT_NAMES and table.endswith(WRITES):
            return False  # Homer neither writes nor reads them.
        owner = row.get("id" if table == "trajectories" else _owner_column(table))
        return owner is None or owner in self.answers

    def remapped(self, table: str, row: Row) -> Row:
        """Return the row with its ids in this library.

        Raises:
            InputError: It refers to a row that is not in the file, or a list in it is none.
        """
        self.added[table] = self.added.get(table, 0) + 1
        if table not in TABLES:
            return row
        new = dict(row)
        if table == VideoRow.__tablename__:
            new["path"] = None
        if table == "messages":
            new["hash"] = self._hashes[row["hash"]]
        if table == "model_calls":
            new["messages"] = [self._hashes[one] for one in row["messages"]]
            new["called_at"] = self._now  # So that none is taken for one that was made here.
        if table in self._numbers:
            new["id"] = self._numbers[table][row["id"]]
        for column in TABLES[table].columns:
            if row.get(column.name) is not None:
                _check_list(column, row[column.name])
                new[column.name] = self._map_reference(column, new[column.name])
        return new

    def _map_reference(self, column: Column[Any], value: Any) -> Any:
        """Return the referenced value in this library."""
        for key in column.foreign_keys:
            table = key.column.table.name
            if key.column.name == "id" and table in self._numbers:
                if value not in self._numbers[table]:
                    raise _altered(f"a row refers to a row of {table} that is not in it")
                return self._numbers[table][value]
            if "video" in column.name and value != self._video:
                raise _altered("a row is of another video")
        return value

    def _answers(self, contents: ExportContents) -> frozenset[str]:
        single_video = {
            trajectory
            for trajectory in contents.questions
            if contents.videos.get(trajectory) == {self._video}
        }
        return frozenset(single_video - known_trajectories(self._session, single_video))

    def _map_ids(self, table: str, ids: list[int], *, keep: bool) -> dict[int, int]:
        """Map the ids in the file to those in this library, in the same order."""
        if keep:
            continue_ids_after(self._session, table, max(ids))
            return {row_id: row_id for row_id in ids}
        return dict(zip(sorted(ids), allocate_ids(self._session, table, len(ids)), strict=True))


def _check_list(column: Column[Any], value: Any) -> None:
    """Check that a value of a column of lists is one; PostgreSQL also takes lists of lists.

    Raises:
        InputError: it is none, or holds lists or nothing.
    """
    if not isinstance(column.type, ARRAY):
        return
    if not isinstance(value, list) or any(one is None or isinstance(one, list) for one in value):
        raise _altered("a list in it is none, or holds others")


def _owner_column(table: str) -> str:
    return "thread_id" if table in CHECKPOINT_NAMES else "trajectory_id"
