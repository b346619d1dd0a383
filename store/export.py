"""Exports: one video in a zip of rows as JSON lines and of its blobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import psycopg
from sqlalchemy import ARRAY, Column
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain import faults
from domain.errors import DatabaseError, InputError
from domain.rights import Deed
from domain.settings import DEFAULT_LIMITS, ImportLimits
from domain.watching import Imported
from store.archive import HIGHEST_ID, open_zip, read_lines, read_member, report_damage, too_large
from store.blobs import image_size
from store.database import Store, remove_orphaned_blobs
from store.driver import allocate_ids, is_database_failure
from store.files import atomic_file
from store.migrations import HEAD
from store.progress import Progress
from store.queries.backup import (
    EXPERIENCE,
    IDENTITY_TABLES,
    TABLES,
    any_id_exists,
    continue_ids_after,
    exported_tables,
    insert_json_rows,
    known_columns,
    known_trajectories,
    rows_of_video,
)
from store.queries.blobs import lock_blobs_shared
from store.queries.encoders import LibraryEncoders, encoders_of_library, require_encoders
from store.queries.rights import record_deed, transaction_time
from store.queries.trajectories import message_hash
from store.queries.videos import known_video
from store.tables.schema import VideoRow

ROWS = "rows.jsonl"


def export_video(store: Store, video_id: str, out: Path) -> None:
    """Write everything about a video to ``out``, atomically.

    In the zip: ``rows.jsonl`` (a head, then one ``[table, row]`` a line: what was learned, vectors
    in full, and the trajectories over this video alone with questions, events, model calls and
    their messages), and ``blobs/SHA256`` (keyframes and crops).

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
        DatabaseError: A blob is missing or damaged.
    """
    with atomic_file(out) as temporary, ZipFile(temporary, "w") as archive:
        shas = []
        with (
            store.begin(snapshot=True) as session,
            archive.open(_entry(ROWS, ZIP_DEFLATED), "w", force_zip64=True) as file,
        ):
            head = {"video": video_id, "revision": HEAD, "encoders": encoders_of_library(session)}
            file.write(json.dumps(head).encode())
            for table, row in rows_of_video(session, video_id):
                file.write(f"\n[{json.dumps(table)}, {row}]".encode())
                if table == "blobs":
                    shas.append(json.loads(row)["sha256"])
        for sha in shas:
            archive.writestr(_entry(f"blobs/{sha}", ZIP_STORED), store.blobs.get(sha))


def _entry(name: str, compression: int) -> ZipInfo:
    """Return a zip entry without a time stamp, so that equal exports are equal bytes."""
    info = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = compression
    info.external_attr = 0o644 << 16
    return info


KIND = "export"
BLOBS = "blobs/"

Row = dict[str, Any]


@dataclass
class ExportContents:
    """What the first pass over an export found.

    Attributes:
        rows: The number of rows.
        ids: The ids of rows, by table.
        videos: The videos of each trajectory.
        questions: The question of each trajectory.
        messages: The message hashes of each trajectory's calls; under None those of the video's.
        hashes: What each message is hashed to, by the hash that the file gives it.
        images: The SHA-256 of the blobs that rows name.
        sizes: The widths and heights that rows give to the blobs that are their pictures.
        recordings: The SHA-256 of the blobs that are recordings.
    """

    rows: int = 0
    ids: dict[str, list[int]] = field(default_factory=dict)
    videos: dict[str, set[str]] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    messages: dict[str | None, set[str]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)
    sizes: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    recordings: set[str] = field(default_factory=set)

    def add(self, table: str, row: Row) -> None:
        """Record a row.

        Raises:
            ValueError: It is not valid.
        """
        self.rows += 1
        if table in IDENTITY_TABLES:
            row_id = row["id"]
            if type(row_id) is not int or not 0 < row_id <= HIGHEST_ID:
                raise ValueError("a row's number that was never given")
            self.ids.setdefault(table, []).append(row_id)
        if table == "trajectories":
            self.questions[row["id"]] = row["question_id"]
        if table == "trajectory_videos":
            self.videos.setdefault(row["trajectory_id"], set()).add(row["video_id"])
        if table == "model_calls":
            self.messages.setdefault(row["trajectory_id"], set()).update(row["messages"])
        if table == "messages":
            self.hashes[row["hash"]] = message_hash(row["content"])
        if table == "blobs":
            self.images.add(str(row["sha256"]))
        if table in ("keyframes", "frames"):
            self.sizes.setdefault(row["blob"], set()).add((row["width"], row["height"]))
        if table == "stream_clips" and row["recording"] is not None:
            self.recordings.add(row["recording"])

    def pixels(self, sha: str, data: bytes) -> int:
        """Return the pixels of a blob, which is a JPEG of the size that its rows give it.

        Raises:
            ValueError: It is not. A recording has to be an MP4.
        """
        if sha in self.recordings and data[4:8] == b"ftyp":
            return 0
        width, height = image_size(data, ("JPEG",))
        if not self.sizes.get(sha, set()) <= {(width, height)}:
            raise ValueError("an image of another size than its row says")
        return width * height


class ExportFile:
    """A reader of an export. The file is untrusted."""

    def __init__(self, path: Path, archive: ZipFile, limits: ImportLimits = DEFAULT_LIMITS) -> None:
        self.path, self._zip, self._limits = path, archive, limits
        with self._zip.open(ROWS) as file:
            head = json.loads(file.readline(10_000))
        if head["revision"] != HEAD:
            raise InputError(f"{self.path} was made by another version of Homer")
        self.video = str(head["video"])
        self.encoders = LibraryEncoders.parse(head["encoders"])

    def contents(self) -> ExportContents:
        """Read the whole file, images included.

        Raises:
            InputError: It is damaged or altered, or exceeds a limit.
        """
        tables = {*exported_tables(), *EXPERIENCE}
        contents = ExportContents()
        for table, row, _size in self.rows():
            if table not in tables:
                raise InputError(f"{self.path} was altered: there is no table {table[:40]!r}")
            with report_damage(self.path, KIND):
                contents.add(table, row)
            if contents.rows > self._limits.rows:
                raise too_large(self.path, "it has too many rows", "rows", self._limits.rows)
        images = set()
        for sha, data in self.blobs():
            images.add(sha)
            with report_damage(self.path, KIND):
                megapixels = contents.pixels(sha, data) / 1e6
            if megapixels > self._limits.image_mp:
                what = f"an image has {megapixels:.0f} megapixels"
                raise too_large(self.path, what, "image_mp", self._limits.image_mp)
        if contents.rows and images != contents.images:
            raise InputError(f"{self.path} was altered: its images are not those its rows name")
        return contents

    def rows(self) -> Iterator[tuple[str, Row, int]]:
        """Yield tables, rows and their bytes in the file, in the order in which to insert them."""
        with report_damage(self.path, KIND), self._zip.open(ROWS) as file:
            lines = read_lines(self.path, file, self._limits)
            next(lines)
            for line in lines:
                table, row = json.loads(line)
                if not isinstance(table, str) or not isinstance(row, dict):
                    raise ValueError("a line that is no row")
                yield table, row, len(line)

    def blobs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the images with their SHA-256, one at a time.

        Raises:
            InputError: One does not match its name, or is too large.
        """
        for name in self._zip.namelist():
            if name.startswith(BLOBS):
                with report_damage(self.path, KIND):
                    data = read_member(self.path, self._zip, name, self._limits)
                sha = hashlib.sha256(data).hexdigest()
                if name != BLOBS + sha:
                    raise InputError(f"{self.path} was altered: an image is not what it was")
                yield sha, data


@contextmanager
def open_export(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> Iterator[ExportFile]:
    """Open the file of an export.

    Raises:
        InputError: It cannot be read, is not an export, is of another revision of the tables, or
            exceeds a limit.
    """
    with open_zip(path, KIND, limits) as archive:
        with report_damage(path, KIND):
            export = ExportFile(path, archive, limits)
        yield export


# Import: a video from an export into a library that does not have it.

BATCH, BATCH_BYTES = 500, 4 << 20
UNCITED_TABLES = ("questions", "model_calls")
"""Tables whose ids nothing cites: their rows always get new ids."""


def import_video(
    store: Store, export: ExportFile, contents: ExportContents, progress: Progress
) -> Imported:
    """Add the video of an export to the library, completely or not at all.

    Raises:
        InputError: The video is in the library already, or has vectors of other encoders; or the
            file is damaged or altered.
        DatabaseError: The database cannot be reached.
    """
    # Rows keep their ids if all of them are free, and answers are imported with them, since they
    # cite by id. Otherwise rows get new ids and answers are left out, as are those over other
    # videos too. The path of the video's file is never imported.
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
) -> Imported:
    if known_video(session, export.video) is not None:
        raise InputError(f"{export.video} is in this library already: delete it here first")
    require_encoders(session, export.encoders)
    lock_blobs_shared(session)
    for _sha, data in export.blobs():
        store.blobs.put(data)
    faults.fault_point(faults.FaultPoint.IMPORTED_IMAGES)
    mapping = RowMapping(session, export.video, contents)
    progress.start("rows", contents.rows)
    try:
        for table, rows in groupby(export.rows(), key=lambda row: row[0]):
            columns = known_columns(table)
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
    return Imported(
        video=video.id,
        title=video.title,
        clips=clips,
        fresh=clips,
        answers=answers,
        left=len(contents.questions) - answers,
    )


def _batches(rows: Iterable[tuple[str, Row, int]]) -> Iterator[list[Row]]:
    """Yield the rows in lists limited by length and size."""
    batch, size = list[Row](), 0
    for _table, row, row_bytes in rows:
        batch.append(row)
        size += row_bytes
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add_batch(session: Session, table: str, known: frozenset[str], rows: list[Row]) -> None:
    if any(row.keys() != known for row in rows):
        raise _altered(f"no table is like its {table}")
    if rows:
        # Vectors beside those of the video's own are of a change of the other library.
        columns = [
            name
            for name in rows[0]
            if not (TABLES[table].columns[name].computed is not None)
            and not name.startswith("next_")
        ]
        insert_json_rows(session, table, columns, [json.dumps(row) for row in rows])


def _altered(problem: str) -> InputError:
    return InputError(f"the export was altered: {problem}")


class RowMapping:
    """Decides which rows are imported, and under which ids."""

    def __init__(self, session: Session, video: str, contents: ExportContents) -> None:
        self._session, self._video = session, video
        self.added: dict[str, int] = {}
        cited_ids = {name: ids for name, ids in contents.ids.items() if name not in UNCITED_TABLES}
        ids_are_free = not any(any_id_exists(session, name, ids) for name, ids in cited_ids.items())
        alone = {one for one in contents.questions if contents.videos.get(one) == {video}}
        self.answers = frozenset(alone - known_trajectories(session, alone) if ids_are_free else ())
        self._questions = {contents.questions[answer] for answer in self.answers}
        self._hashes, self._now = contents.hashes, transaction_time(session).isoformat()
        message_hashes = (contents.messages.get(answer, set()) for answer in (None, *self.answers))
        self._messages = set[str]().union(*message_hashes)
        self._numbers = {
            name: self._map_ids(name, ids, keep=ids_are_free and name in cited_ids)
            for name, ids in contents.ids.items()
        }

    def is_imported(self, table: str, row: Row) -> bool:
        if table in EXPERIENCE:
            return False  # Skills are learned from what was judged here.
        if table == "questions":
            return row["id"] in self._questions
        if table == "messages":
            return row["hash"] in self._messages
        owner = row.get("id" if table == "trajectories" else "trajectory_id")
        return owner is None or owner in self.answers

    def remapped(self, table: str, row: Row) -> Row:
        """Return the row with its ids in this library.

        Raises:
            InputError: It refers to a row that is not in the file, or a list in it is none.
        """
        self.added[table] = self.added.get(table, 0) + 1
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
            value = row.get(column.name)
            if value is None:
                continue
            # PostgreSQL also takes lists of lists.
            if isinstance(column.type, ARRAY) and (
                not isinstance(value, list)
                or any(one is None or isinstance(one, list) for one in value)
            ):
                raise _altered("a list in it is none, or holds others")
            new[column.name] = self._map_reference(column, new[column.name])
        return new

    def _map_reference(self, column: Column[Any], value: Any) -> Any:
        for key in column.foreign_keys:
            table = key.column.table.name
            if key.column.name == "id" and table in self._numbers:
                if value not in self._numbers[table]:
                    raise _altered(f"a row refers to a row of {table} that is not in it")
                return self._numbers[table][value]
            if "video" in column.name and value != self._video:
                raise _altered("a row is of another video")
        return value

    def _map_ids(self, table: str, ids: list[int], *, keep: bool) -> dict[int, int]:
        """Map the ids in the file to those in this library, in the same order."""
        if keep:
            continue_ids_after(self._session, table, max(ids))
            return {row_id: row_id for row_id in ids}
        return dict(zip(sorted(ids), allocate_ids(self._session, table, len(ids)), strict=True))


def import_exported_video(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = DEFAULT_LIMITS
) -> Imported:
    """Import the video of an export into a library.

    Raises:
        InputError: the file is no export, is incomplete or altered, exceeds a limit, or the video
            is in the library already; nothing was changed.
        DatabaseError: the database failed; nothing of the video was stored.
    """
    with open_export(path, limits) as parcel:
        return import_video(store, parcel, parcel.contents(), progress)
