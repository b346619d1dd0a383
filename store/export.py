"""Exports: one video in a zip of rows as JSON lines and of its blobs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from domain.errors import InputError
from domain.limits import DEFAULT_LIMITS, ImportLimits
from store.blobs import image_size
from store.checkpoint_values import check_row
from store.database import Store
from store.files import atomic_file
from store.migrations import HEAD
from store.queries.calls import message_hash
from store.queries.export import (
    CHECKPOINT_NAMES,
    EXPERIENCE,
    IDENTITY_TABLES,
    exported_tables,
    rows_of_video,
)
from store.zips import open_zip, read_lines, read_member, report_damage, too_large

ROWS = "rows.jsonl"


def export_video(store: Store, video_id: str, out: Path) -> None:
    """Write everything about a video to ``out``, atomically.

    In the zip: ``rows.jsonl`` (a head, then one ``[table, row]`` a line: what was learned, vectors
    in full, and the trajectories over this video alone with questions, events, checkpoints, model
    calls and their messages), and ``blobs/SHA256`` (keyframes and crops).

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
        DatabaseError: A blob is missing or damaged.
    """
    with atomic_file(out) as temporary, ZipFile(temporary, "w") as archive:
        head = {"video": video_id, "revision": HEAD}
        shas = []
        with (
            store.begin(snapshot=True) as session,
            archive.open(_entry(ROWS, ZIP_DEFLATED), "w", force_zip64=True) as file,
        ):
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
HIGHEST_ID = 1 << 53
"""The highest id accepted, which leaves enough for later rows."""

Row = dict[str, Any]


class ExportRow(NamedTuple):
    """A row of a table; ``size`` is its number of bytes in the file."""

    table: str
    row: Row
    size: int


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
        has_checkpoints: Whether there are rows of checkpoints.
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
    has_checkpoints: bool = False

    def add(self, table: str, row: Row) -> None:
        """Record a row.

        Raises:
            ValueError: It is not valid.
            InputError: It is a checkpoint with more than plain data.
        """
        self.rows += 1
        check_row(table, row)
        self.has_checkpoints |= table in CHECKPOINT_NAMES
        if table in IDENTITY_TABLES:
            self.ids.setdefault(table, []).append(_id_of(row))
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


def _id_of(row: Row) -> int:
    row_id = row["id"]
    if type(row_id) is not int or not 0 < row_id <= HIGHEST_ID:
        raise ValueError("a row's number that was never given")
    return row_id


class ExportFile:
    """A reader of an export. The file is untrusted."""

    def __init__(self, path: Path, archive: ZipFile, limits: ImportLimits = DEFAULT_LIMITS) -> None:
        self.path, self._zip, self._limits = path, archive, limits
        self.video = self._read_head()

    def contents(self) -> ExportContents:
        """Read the whole file, images included.

        Raises:
            InputError: It is damaged or altered, or exceeds a limit.
        """
        tables = {*exported_tables(), *CHECKPOINT_NAMES, *EXPERIENCE}
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

    def rows(self) -> Iterator[ExportRow]:
        """Yield tables and rows, in the order in which to insert them."""
        with report_damage(self.path, KIND), self._zip.open(ROWS) as file:
            lines = read_lines(self.path, file, self._limits)
            next(lines)
            for line in lines:
                table, row = json.loads(line)
                if not isinstance(table, str) or not isinstance(row, dict):
                    raise ValueError("a line that is no row")
                yield ExportRow(table, row, len(line))

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

    def _read_head(self) -> str:
        with self._zip.open(ROWS) as file:
            head = json.loads(file.readline(10_000))
        if head["revision"] != HEAD:
            raise InputError(f"{self.path} was made by another version of Homer")
        return str(head["video"])


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
