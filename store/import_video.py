"""A video out of the file of an export, into any library that does not have it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import Column
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.errors import DatabaseError, InputError
from store.bulk_insert import take_ids
from store.checkpoint_values import WRITES
from store.database import Store
from store.export_reader import Contents, ExportFile, ExportRow, Row
from store.failures import is_failure
from store.progress import Progress
from store.queries.audit import note
from store.queries.blobs import hold_blobs
from store.queries.export import (
    CHECKPOINT_NAMES,
    TABLES,
    add_rows,
    count_from,
    known_columns,
    known_trajectories,
    taken,
)
from store.queries.videos import known_video
from store.sweep import sweep_blobs
from store.tables.schema import VideoRow

BATCH, BATCH_BYTES = 500, 4 << 20
UNCITED = ("questions", "model_calls")
"""Tables whose numbers nobody cites: their rows are numbered anew in any case."""


class ImportedVideo(NamedTuple):
    """What came of an import; ``left``: answers that could not come along."""

    video: str
    title: str
    clips: int
    answers: int
    left: int


def import_video(
    store: Store, parcel: ExportFile, contents: Contents, progress: Progress
) -> ImportedVideo:
    """Add the video of an export to the library: everything of it, or nothing.

    Rows keep their numbers where all of them are free, and answers come along, since they cite by
    number. Otherwise rows are numbered anew and answers are left out, as are those that looked at
    other videos too. Where the video's file lies is never taken over: that is for this machine to
    know.

    Raises:
        InputError: the video is here already; or the file is torn or altered.
        DatabaseError: the database is gone.
    """
    try:
        with store.begin() as session:
            made = _add(store, session, parcel, contents, progress)
    except BaseException:
        with suppress(DatabaseError):
            sweep_blobs(store)
        raise
    faults.fault_point(faults.FaultPoint.IMPORTED)
    return made


def _add(
    store: Store, session: Session, parcel: ExportFile, contents: Contents, progress: Progress
) -> ImportedVideo:
    if known_video(session, parcel.video) is not None:
        raise InputError(f"{parcel.video} is in this library already: delete it here first")
    hold_blobs(session)
    for _sha, data in parcel.blobs():
        store.blobs.put(data)
    faults.fault_point(faults.FaultPoint.IMPORTED_IMAGES)
    sorting = Sorting(session, parcel.video, contents)
    progress.start("rows", contents.rows)
    try:
        _add_rows(session, parcel, sorting, progress.step)
    except (DBAPIError, psycopg.Error) as exc:
        if is_failure(exc):
            raise
        raise _altered("its rows do not fit their tables") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise _altered("a row is not of the kind that its table has") from exc
    faults.fault_point(faults.FaultPoint.IMPORTED_ROWS)
    video = known_video(session, parcel.video)
    if video is None:
        raise _altered("the video itself is not in it")
    note(session, Deed.IMPORTED, video.id)
    answers, clips = len(sorting.answers), sorting.added.get("clips", 0)
    return ImportedVideo(video.id, video.title, clips, answers, len(contents.questions) - answers)


def _add_rows(
    session: Session, parcel: ExportFile, sorting: Sorting, step: Callable[[int], None]
) -> None:
    for table, rows in groupby(parcel.rows(), key=lambda one: one.table):
        known = known_columns(session, table)
        for batch in _batches(rows):
            kept = [sorting.changed(table, row) for row in batch if sorting.keeps(table, row)]
            _add_batch(session, table, known, kept)
            step(len(batch))


def _batches(rows: Iterable[ExportRow]) -> Iterator[list[Row]]:
    """The rows in lists that are neither long nor large."""
    batch, size = list[Row](), 0
    for one in rows:
        batch.append(one.row)
        size += one.size
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add_batch(session: Session, table: str, known: frozenset[str], rows: list[Row]) -> None:
    if any(row.keys() != rows[0].keys() or not row.keys() <= known for row in rows):
        raise _altered(f"no table is like its {table}")
    if rows:
        columns = [name for name in rows[0] if not _computed(table, name)]
        add_rows(session, table, columns, [json.dumps(row) for row in rows])


def _computed(table: str, column: str) -> bool:
    return table in TABLES and TABLES[table].columns[column].computed is not None


def _altered(how: str) -> InputError:
    return InputError(f"the export was altered: {how}")


class Sorting:
    """Decides which rows come along, and under which numbers."""

    def __init__(self, session: Session, video: str, contents: Contents) -> None:
        self._session, self._video = session, video
        self.added: dict[str, int] = {}
        cited = {name: ids for name, ids in contents.ids.items() if name not in UNCITED}
        free = not any(taken(session, name, ids) for name, ids in cited.items())
        self.answers = self._answers(contents) if free else frozenset()
        self._questions = {contents.questions[one] for one in self.answers}
        said = (contents.said.get(one, set()) for one in (None, *self.answers))
        self._said = set[str]().union(*said)
        self._numbers = {
            name: self._numbered(name, ids, keep=free and name in cited)
            for name, ids in contents.ids.items()
        }

    def keeps(self, table: str, row: Row) -> bool:
        """Whether a row comes along."""
        if table == "questions":
            return row["id"] in self._questions
        if table == "messages":
            return row["hash"] in self._said
        if table in CHECKPOINT_NAMES and table.endswith(WRITES):
            return False  # Homer writes none, and reads none.
        owner = row.get("id" if table == "trajectories" else _owner(table))
        return owner is None or owner in self.answers

    def changed(self, table: str, row: Row) -> Row:
        """The row with the numbers that it has here.

        Raises:
            InputError: it refers to what is not in the file.
        """
        self.added[table] = self.added.get(table, 0) + 1
        if table not in TABLES:
            return row
        new = dict(row)
        if table == VideoRow.__tablename__:
            new["path"] = None
        if table in self._numbers:
            new["id"] = self._numbers[table][row["id"]]
        for column in TABLES[table].columns:
            if row.get(column.name) is not None:
                new[column.name] = self._referred(column, new[column.name])
        return new

    def _referred(self, column: Column[Any], value: Any) -> Any:
        """What a reference refers to here."""
        for key in column.foreign_keys:
            table = key.column.table.name
            if key.column.name == "id" and table in self._numbers:
                if value not in self._numbers[table]:
                    raise _altered(f"a row refers to a row of {table} that is not in it")
                return self._numbers[table][value]
            if "video" in column.name and value != self._video:
                raise _altered("a row is of another video")
        return value

    def _answers(self, contents: Contents) -> frozenset[str]:
        alone = {one for one in contents.questions if contents.looked.get(one) == {self._video}}
        return frozenset(alone - known_trajectories(self._session, alone))

    def _numbered(self, table: str, ids: list[int], *, keep: bool) -> dict[int, int]:
        """From the numbers in the file to those here; the order stays."""
        if keep:
            count_from(self._session, table, max(ids))
            return {one: one for one in ids}
        return dict(zip(sorted(ids), take_ids(self._session, table, len(ids)), strict=True))


def _owner(table: str) -> str:
    return "thread_id" if table in CHECKPOINT_NAMES else "trajectory_id"
